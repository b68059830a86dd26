//! Tests of input requests from upstreams of the handshake era, for clients that retry the call with the responses.

use std::thread;

use serde_json::{Value, json};

use crate::{A_MOMENT, Bridge, asking, form, named, only_key, text};

fn elicits() -> Value {
    json!({"elicitation": {}})
}

#[test]
fn an_input_request_is_the_result_and_the_response_is_sent_under_its_own_id() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({"n": 1}));
    let received = bridge.puppets.hears("tools/call");
    assert_eq!(received.message["params"], json!({"name": "ask", "arguments": {"n": 1}}));
    received.by.asks(json!("a question"), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    let key = only_key(&request);
    let sent = &request["inputRequests"][&key];
    assert_eq!(sent["method"], "elicitation/create");
    assert_eq!(sent["params"]["message"], "Who?");
    let mut retry = client.begin_again(
        "ask",
        json!({"n": 1}),
        &request["requestState"],
        json!({key: named("Ann")}),
    );
    let response = bridge.puppets.next();
    assert_eq!(
        response.message,
        json!({"jsonrpc": "2.0", "id": "a question", "result": named("Ann")})
    );
    assert_eq!(response.by.pid, received.by.pid);
    received.text("Hello, Ann!");
    assert_eq!(text(&retry.answer()), "Hello, Ann!");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream gets the call once");
}

#[test]
fn no_is_an_answer_too() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    for action in ["decline", "cancel"] {
        let mut call = client.begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        received.by.asks(json!(7), "elicitation/create", form("Who?"));
        let request = call.answer()["result"].clone();
        let no = json!({only_key(&request): {"action": action}});
        let mut retry = client.begin_again("ask", json!({}), &request["requestState"], no);
        assert_eq!(bridge.puppets.next().message["result"], json!({"action": action}));
        received.text("as you like");
        assert_eq!(text(&retry.answer()), "as you like");
    }
}

#[test]
fn three_input_requests_are_three_rounds_with_three_keys_and_one_call() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    let mut keys = Vec::new();
    for round in 1..=3 {
        received.by.asks(json!(round), "elicitation/create", form("More?"));
        let request = call.answer()["result"].clone();
        let key = only_key(&request);
        let responses = json!({&key: named(&format!("{round}"))});
        keys.push(key);
        call = client.begin_again("ask", json!({}), &request["requestState"], responses);
        let response = bridge.puppets.next().message;
        assert_eq!(response["id"], round);
        assert_eq!(response["result"]["content"]["name"], format!("{round}"));
    }
    received.text("enough");
    assert_eq!(text(&call.answer()), "enough");
    keys.dedup();
    assert_eq!(keys.len(), 3, "{keys:?}");
}

#[test]
fn concurrent_input_requests_are_sent_together_and_missing_responses_requested_again() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks_at_once(&[
        (json!(1), "elicitation/create", form("First?")),
        (json!(2), "elicitation/create", form("Second?")),
    ]);
    let request = call.answer()["result"].clone();
    let requests = request["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 2, "{request}");
    let first =
        requests.iter().find(|(_, value)| value["params"]["message"] == "First?").unwrap().0;
    let responses = json!({first: named("one"), "unknown": named("nobody")});
    call = client.begin_again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("one"));
    let request = call.answer()["result"].clone();
    let second = only_key(&request);
    assert_ne!(*first, second);
    let responses = json!({second: named("two")});
    call = client.begin_again("ask", json!({}), &request["requestState"], responses);
    let response = bridge.puppets.next().message;
    assert_eq!((&response["id"], &response["result"]), (&json!(2), &named("two")));
    received.text("both");
    assert_eq!(text(&call.answer()), "both");
}

#[test]
fn roots_and_sampling_are_requested_and_a_session_with_roots_serves_no_other_principal() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"sampling": {}, "roots": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    let params = json!({"messages": [], "maxTokens": 5});
    received.by.asks_at_once(&[
        (json!(1), "sampling/createMessage", params),
        (json!(2), "roots/list", json!({})),
    ]);
    let request = call.answer()["result"].clone();
    let requests = request["inputRequests"].as_object().unwrap();
    let sampled =
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"});
    let roots = json!({"roots": [{"uri": "file:///home"}]});
    let responses: serde_json::Map<_, _> = requests
        .iter()
        .map(|(key, sent)| match sent["method"].as_str().unwrap() {
            "roots/list" => (key.clone(), roots.clone()),
            _ => (key.clone(), sampled.clone()),
        })
        .collect();
    assert_eq!(responses.len(), 2, "{request}");
    call = client.begin_again("ask", json!({}), &request["requestState"], json!(responses));
    let mut told = [bridge.puppets.next().message, bridge.puppets.next().message];
    told.sort_by_key(|message| message["id"].as_i64());
    assert_eq!((&told[0]["result"], &told[1]["result"]), (&sampled, &roots));
    received.text("done");
    assert_eq!(text(&call.answer()), "done");
    let clients = [(client.clone(), true), (client.named("other"), false), (client, true)];
    for (client, is_same) in clients {
        let mut call = client.begin_call("ask", json!({}));
        let next = bridge.puppets.hears("tools/call");
        assert_eq!(
            next.by.pid == received.by.pid,
            is_same,
            "only the same client may use a session with its roots"
        );
        next.text("next");
        assert_eq!(text(&call.answer()), "next");
    }
}

#[test]
fn a_server_is_told_what_the_caller_of_each_call_can_do() {
    let bridge = Bridge::new(asking());
    let mut call = bridge.modern().that_can(json!({"sampling": {}})).begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    let opened =
        received.by.told().into_iter().find(|value| value["method"] == "initialize").unwrap();
    assert!(opened["params"]["capabilities"].get("sampling").is_some(), "{opened}");
    assert!(opened["params"]["capabilities"].get("elicitation").is_none(), "{opened}");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let refused = bridge.puppets.next().message;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32601)));
    received.text("well");
    assert_eq!(text(&call.answer()), "well");
}

#[test]
fn the_same_answers_twice_are_told_once_and_other_answers_are_refused() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    let (key, state) = (only_key(&request), &request["requestState"]);
    let mut first = client.begin_again("ask", json!({}), state, json!({&key: named("Ann")}));
    assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
    let mut second = client.begin_again("ask", json!({}), state, json!({&key: named("Ann")}));
    let other = client.again("ask", json!({}), state, json!({&key: named("Eve")}));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    assert_eq!(other["error"]["data"]["reason"], "state_consumed");
    received.text("Hello, Ann!");
    assert_eq!(text(&first.answer()), "Hello, Ann!");
    assert_eq!(text(&second.answer()), "Hello, Ann!");
    let late = client.again("ask", json!({}), state, json!({&key: named("Ann")}));
    assert_eq!(text(&late), "Hello, Ann!", "a caller that lost the response gets it again");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream got one input response");
}

#[test]
fn the_outcome_of_a_call_whose_question_was_given_up_is_there_for_the_retry() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    received.by.tells("notifications/cancelled", &json!({"requestId": 1}));
    let late = json!({"content": [{"type": "text", "text": "nobody came"}], "isError": true});
    received.result(late);
    let responses = json!({only_key(&request): named("Ann")});
    let response = client.again("ask", json!({}), &request["requestState"], responses);
    assert_eq!(response["result"]["content"][0]["text"], "nobody came", "{response}");
    assert_eq!(response["result"]["isError"], true);
}

#[test]
fn two_calls_that_may_be_asked_have_conversations_of_their_own() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut calls = Vec::new();
    for who in ["Ann", "Ben"] {
        let mut call = client.begin_call("ask", json!({"who": who}));
        let received = bridge.puppets.hears("tools/call");
        assert_eq!(received.message["params"]["arguments"]["who"], who);
        received.by.asks(json!(1), "elicitation/create", form(who));
        let request = call.answer()["result"].clone();
        let key = only_key(&request);
        assert_eq!(request["inputRequests"][&key]["params"]["message"], who);
        calls.push((who, received, request, key));
    }
    assert_ne!(calls[0].1.by.pid, calls[1].1.by.pid);
    for (who, received, request, key) in calls.iter().rev() {
        let responses = json!({key: named(who)});
        let arguments = json!({"who": who});
        let mut retry = client.begin_again("ask", arguments, &request["requestState"], responses);
        let response = bridge.puppets.next();
        assert_eq!((response.by.pid, &response.message["result"]), (received.by.pid, &named(who)));
        received.text(who);
        assert_eq!(text(&retry.answer()), *who);
    }
}

#[test]
fn eight_calls_at_once_that_may_be_asked_all_end_and_no_question_crosses() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let callers: Vec<_> = (0..8)
        .map(|number| {
            let client = client.clone();
            thread::spawn(move || {
                let arguments = json!({"number": number});
                let request = client.call("ask", arguments.clone())["result"].clone();
                let key = only_key(&request);
                let message = &request["inputRequests"][&key]["params"]["message"];
                assert_eq!(*message, format!("{number}?"));
                let responses = json!({key: named(&format!("{number}"))});
                let response = client.again("ask", arguments, &request["requestState"], responses);
                assert_eq!(text(&response), format!("{number}!"));
            })
        })
        .collect();
    let mut open = Vec::new();
    for _ in 0..16 {
        let output = bridge.puppets.next();
        if output.message["method"] == "tools/call" {
            let number = output.message["params"]["arguments"]["number"].clone();
            output.by.asks(json!("q"), "elicitation/create", form(&format!("{number}?")));
            open.push((output, number));
        } else {
            let index = open.iter().position(|(call, _)| call.by.pid == output.by.pid).unwrap();
            let (call, number) = open.remove(index);
            assert_eq!(output.message["result"]["content"]["name"], format!("{number}"));
            call.text(&format!("{number}!"));
        }
    }
    callers.into_iter().for_each(|caller| caller.join().unwrap());
}

#[test]
fn a_server_that_dies_while_its_question_is_open_loses_the_call_and_is_started_again() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    received.by.ends();
    let responses = json!({only_key(&request): named("Ann")});
    let lost = client.again("ask", json!({}), &request["requestState"], responses);
    let is_notified = lost.get("error").is_some() || lost["result"]["isError"] == true;
    assert!(is_notified, "{lost}");
    // A process that exits soon after its start is restarted only after a delay. Calls get an error meanwhile.
    let mut call = client.begin_call("ask", json!({}));
    let repeated = loop {
        if let Some(repeated) = bridge.puppets.within(A_MOMENT / 10) {
            break repeated;
        }
        if let Some(refused) = call.within(A_MOMENT / 10) {
            assert_eq!(refused["error"]["code"], -32603, "{refused}");
            call = client.begin_call("ask", json!({}));
        }
    };
    assert_ne!(repeated.by.pid, received.by.pid);
    repeated.text("back");
    assert_eq!(text(&call.answer()), "back");
}

#[test]
fn a_result_and_a_question_in_one_breath_are_a_result() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    let result = json!({"jsonrpc": "2.0", "id": received.message["id"], "result": result});
    let request = json!({
        "jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": form("Who?"),
    });
    received.by.writes(&format!("{result}\n{request}\n"));
    assert_eq!(text(&call.answer()), "done");
    let refused = bridge.puppets.next().message;
    assert_eq!(refused["id"], 9, "{refused}");
    assert!(refused.get("error").is_some() || refused["result"]["action"] == "cancel", "{refused}");
}

#[test]
fn more_calls_than_may_wait_are_refused_and_the_others_go_on() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut waiting = Vec::new();
    for number in 0..8 {
        let mut call = client.begin_call("ask", json!({"number": number}));
        let received = bridge.puppets.hears("tools/call");
        received.by.asks(json!(1), "elicitation/create", form("Who?"));
        waiting.push((received, call.answer()["result"].clone()));
    }
    // A call of a client without input capabilities needs no session of its own.
    let mut plain = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.text("plain");
    assert_eq!(text(&plain.answer()), "plain");
    for (number, (received, request)) in waiting.iter().enumerate() {
        let responses = json!({only_key(request): named("Ann")});
        let arguments = json!({"number": number});
        let mut retry = client.begin_again("ask", arguments, &request["requestState"], responses);
        assert_eq!(bridge.puppets.next().by.pid, received.by.pid);
        received.text("done");
        assert_eq!(text(&retry.answer()), "done");
    }
}

#[test]
fn a_server_that_asks_for_folders_at_once_is_told_them_before_it_is_called() {
    let bridge = Bridge::new(asking().leaving("ping"));
    let listed = bridge.modern().request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "ask", "the list does not wait for roots");
    // A client without roots gets no request for them.
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    let messages = received.by.told();
    let opened = messages.iter().find(|value| value["method"] == "initialize").unwrap();
    assert!(opened["params"]["capabilities"].get("roots").is_none(), "{opened}");
    received.text("without");
    assert_eq!(text(&call.answer()), "without");
    let client = bridge.modern().that_can(json!({"roots": {}}));
    let mut call = client.begin_call("ask", json!({"n": 1}));
    // The child sends its request as soon as the session is open, and responds to the ping afterwards.
    let looked = bridge.puppets.hears("ping");
    looked.by.asks(json!(1), "roots/list", json!({}));
    looked.result(json!({}));
    let request = call.answer()["result"].clone();
    let key = only_key(&request);
    assert_eq!(request["inputRequests"][&key]["method"], "roots/list");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the call waits for the roots");
    let roots = json!({"roots": [{"uri": "file:///home"}]});
    let mut retry = client.begin_again(
        "ask",
        json!({"n": 1}),
        &request["requestState"],
        json!({key: roots.clone()}),
    );
    let response = bridge.puppets.next();
    assert_eq!((&response.message["id"], &response.message["result"]), (&json!(1), &roots));
    let received = bridge.puppets.hears("tools/call");
    assert_eq!(received.by.pid, looked.by.pid);
    assert_eq!(received.message["params"]["arguments"], json!({"n": 1}));
    received.text("rooted");
    assert_eq!(text(&retry.answer()), "rooted");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream gets the call once");
}

#[test]
fn an_upstream_without_early_input_requests_is_called_at_once() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"roots": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.text("at once");
    assert_eq!(text(&call.answer()), "at once");
}

#[test]
fn a_call_that_was_never_started_is_not_started_without_a_response() {
    let bridge = Bridge::new(asking().leaving("ping"));
    let client = bridge.modern().that_can(json!({"roots": {}}));
    let call = client.begin_call("ask", json!({}));
    let looked = bridge.puppets.hears("ping");
    call.hang_up();
    // The gateway writes to the closed connection before it notices that the client has left.
    let meanwhile = bridge.puppets.within(A_MOMENT).map(|message| message.message);
    assert!(meanwhile.is_none_or(|value| value["method"] == "notifications/cancelled"));
    looked.by.asks(json!(1), "roots/list", json!({}));
    looked.result(json!({}));
    let refused = loop {
        let text = bridge.puppets.next().message;
        assert_ne!(text["method"], "tools/call", "{text}");
        if text["id"] == 1 {
            break text;
        }
    };
    assert!(refused.get("error").is_some(), "{refused}");
    assert!(
        bridge
            .puppets
            .within(A_MOMENT)
            .is_none_or(|received_message| received_message.message["method"] != "tools/call")
    );
}
