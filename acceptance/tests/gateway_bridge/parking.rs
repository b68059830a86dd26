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
    let called = bridge.puppets.hears("tools/call");
    assert_eq!(called.message["params"], json!({"name": "ask", "arguments": {"n": 1}}));
    called.by.asks(json!("a question"), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    let key = only_key(&asked);
    let question = &asked["inputRequests"][&key];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["message"], "Who?");
    let mut again = client.begin_again(
        "ask",
        json!({"n": 1}),
        &asked["requestState"],
        json!({key: named("Ann")}),
    );
    let answered = bridge.puppets.next();
    assert_eq!(
        answered.message,
        json!({"jsonrpc": "2.0", "id": "a question", "result": named("Ann")})
    );
    assert_eq!(answered.by.pid, called.by.pid);
    called.text("Hello, Ann!");
    assert_eq!(text(&again.answer()), "Hello, Ann!");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream gets the call once");
}

#[test]
fn no_is_an_answer_too() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    for action in ["decline", "cancel"] {
        let mut call = client.begin_call("ask", json!({}));
        let called = bridge.puppets.hears("tools/call");
        called.by.asks(json!(7), "elicitation/create", form("Who?"));
        let asked = call.answer()["result"].clone();
        let no = json!({only_key(&asked): {"action": action}});
        let mut again = client.begin_again("ask", json!({}), &asked["requestState"], no);
        assert_eq!(bridge.puppets.next().message["result"], json!({"action": action}));
        called.text("as you like");
        assert_eq!(text(&again.answer()), "as you like");
    }
}

#[test]
fn three_input_requests_are_three_rounds_with_three_keys_and_one_call() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    let mut keys = Vec::new();
    for round in 1..=3 {
        called.by.asks(json!(round), "elicitation/create", form("More?"));
        let asked = call.answer()["result"].clone();
        let key = only_key(&asked);
        let answers = json!({&key: named(&format!("{round}"))});
        keys.push(key);
        call = client.begin_again("ask", json!({}), &asked["requestState"], answers);
        let answered = bridge.puppets.next().message;
        assert_eq!(answered["id"], round);
        assert_eq!(answered["result"]["content"]["name"], format!("{round}"));
    }
    called.text("enough");
    assert_eq!(text(&call.answer()), "enough");
    keys.dedup();
    assert_eq!(keys.len(), 3, "{keys:?}");
}

#[test]
fn concurrent_input_requests_are_sent_together_and_missing_responses_requested_again() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    called.by.asks_at_once(&[
        (json!(1), "elicitation/create", form("First?")),
        (json!(2), "elicitation/create", form("Second?")),
    ]);
    let asked = call.answer()["result"].clone();
    let questions = asked["inputRequests"].as_object().unwrap();
    assert_eq!(questions.len(), 2, "{asked}");
    let first = questions.iter().find(|(_, it)| it["params"]["message"] == "First?").unwrap().0;
    let answers = json!({first: named("one"), "unknown": named("nobody")});
    call = client.begin_again("ask", json!({}), &asked["requestState"], answers);
    assert_eq!(bridge.puppets.next().message["result"], named("one"));
    let asked = call.answer()["result"].clone();
    let second = only_key(&asked);
    assert_ne!(*first, second);
    let answers = json!({second: named("two")});
    call = client.begin_again("ask", json!({}), &asked["requestState"], answers);
    let answered = bridge.puppets.next().message;
    assert_eq!((&answered["id"], &answered["result"]), (&json!(2), &named("two")));
    called.text("both");
    assert_eq!(text(&call.answer()), "both");
}

#[test]
fn roots_and_sampling_are_requested_and_a_session_with_roots_serves_no_other_principal() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"sampling": {}, "roots": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    let params = json!({"messages": [], "maxTokens": 5});
    called.by.asks_at_once(&[
        (json!(1), "sampling/createMessage", params),
        (json!(2), "roots/list", json!({})),
    ]);
    let asked = call.answer()["result"].clone();
    let questions = asked["inputRequests"].as_object().unwrap();
    let sampled =
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"});
    let roots = json!({"roots": [{"uri": "file:///home"}]});
    let answers: serde_json::Map<_, _> = questions
        .iter()
        .map(|(key, question)| match question["method"].as_str().unwrap() {
            "roots/list" => (key.clone(), roots.clone()),
            _ => (key.clone(), sampled.clone()),
        })
        .collect();
    assert_eq!(answers.len(), 2, "{asked}");
    call = client.begin_again("ask", json!({}), &asked["requestState"], json!(answers));
    let mut told = [bridge.puppets.next().message, bridge.puppets.next().message];
    told.sort_by_key(|message| message["id"].as_i64());
    assert_eq!((&told[0]["result"], &told[1]["result"]), (&sampled, &roots));
    called.text("done");
    assert_eq!(text(&call.answer()), "done");
    let clients = [(client.clone(), true), (client.named("other"), false), (client, true)];
    for (client, is_same) in clients {
        let mut call = client.begin_call("ask", json!({}));
        let next = bridge.puppets.hears("tools/call");
        assert_eq!(
            next.by.pid == called.by.pid,
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
    let called = bridge.puppets.hears("tools/call");
    let opened = called.by.told().into_iter().find(|it| it["method"] == "initialize").unwrap();
    assert!(opened["params"]["capabilities"].get("sampling").is_some(), "{opened}");
    assert!(opened["params"]["capabilities"].get("elicitation").is_none(), "{opened}");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let refused = bridge.puppets.next().message;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(1), &json!(-32601)));
    called.text("well");
    assert_eq!(text(&call.answer()), "well");
}

#[test]
fn the_same_answers_twice_are_told_once_and_other_answers_are_refused() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    let (key, state) = (only_key(&asked), &asked["requestState"]);
    let mut first = client.begin_again("ask", json!({}), state, json!({&key: named("Ann")}));
    assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
    let mut second = client.begin_again("ask", json!({}), state, json!({&key: named("Ann")}));
    let other = client.again("ask", json!({}), state, json!({&key: named("Eve")}));
    assert_eq!(other["error"]["code"], -32602, "{other}");
    assert_eq!(other["error"]["data"]["reason"], "state_consumed");
    called.text("Hello, Ann!");
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
    let called = bridge.puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    called.by.tells("notifications/cancelled", &json!({"requestId": 1}));
    let late = json!({"content": [{"type": "text", "text": "nobody came"}], "isError": true});
    called.result(late);
    let answers = json!({only_key(&asked): named("Ann")});
    let answer = client.again("ask", json!({}), &asked["requestState"], answers);
    assert_eq!(answer["result"]["content"][0]["text"], "nobody came", "{answer}");
    assert_eq!(answer["result"]["isError"], true);
}

#[test]
fn two_calls_that_may_be_asked_have_conversations_of_their_own() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut calls = Vec::new();
    for who in ["Ann", "Ben"] {
        let mut call = client.begin_call("ask", json!({"who": who}));
        let called = bridge.puppets.hears("tools/call");
        assert_eq!(called.message["params"]["arguments"]["who"], who);
        called.by.asks(json!(1), "elicitation/create", form(who));
        let asked = call.answer()["result"].clone();
        let key = only_key(&asked);
        assert_eq!(asked["inputRequests"][&key]["params"]["message"], who);
        calls.push((who, called, asked, key));
    }
    assert_ne!(calls[0].1.by.pid, calls[1].1.by.pid);
    for (who, called, asked, key) in calls.iter().rev() {
        let answers = json!({key: named(who)});
        let arguments = json!({"who": who});
        let mut again = client.begin_again("ask", arguments, &asked["requestState"], answers);
        let answered = bridge.puppets.next();
        assert_eq!((answered.by.pid, &answered.message["result"]), (called.by.pid, &named(who)));
        called.text(who);
        assert_eq!(text(&again.answer()), *who);
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
                let asked = client.call("ask", arguments.clone())["result"].clone();
                let key = only_key(&asked);
                let message = &asked["inputRequests"][&key]["params"]["message"];
                assert_eq!(*message, format!("{number}?"));
                let answers = json!({key: named(&format!("{number}"))});
                let answer = client.again("ask", arguments, &asked["requestState"], answers);
                assert_eq!(text(&answer), format!("{number}!"));
            })
        })
        .collect();
    let mut open = Vec::new();
    for _ in 0..16 {
        let heard = bridge.puppets.next();
        if heard.message["method"] == "tools/call" {
            let number = heard.message["params"]["arguments"]["number"].clone();
            heard.by.asks(json!("q"), "elicitation/create", form(&format!("{number}?")));
            open.push((heard, number));
        } else {
            let place = open.iter().position(|(call, _)| call.by.pid == heard.by.pid).unwrap();
            let (call, number) = open.remove(place);
            assert_eq!(heard.message["result"]["content"]["name"], format!("{number}"));
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
    let called = bridge.puppets.hears("tools/call");
    called.by.asks(json!(1), "elicitation/create", form("Who?"));
    let asked = call.answer()["result"].clone();
    called.by.ends();
    let answers = json!({only_key(&asked): named("Ann")});
    let lost = client.again("ask", json!({}), &asked["requestState"], answers);
    let is_told = lost.get("error").is_some() || lost["result"]["isError"] == true;
    assert!(is_told, "{lost}");
    // A process that exits soon after its start is restarted only after a delay. Calls get an error meanwhile.
    let mut call = client.begin_call("ask", json!({}));
    let again = loop {
        if let Some(again) = bridge.puppets.within(A_MOMENT / 10) {
            break again;
        }
        if let Some(refused) = call.within(A_MOMENT / 10) {
            assert_eq!(refused["error"]["code"], -32603, "{refused}");
            call = client.begin_call("ask", json!({}));
        }
    };
    assert_ne!(again.by.pid, called.by.pid);
    again.text("back");
    assert_eq!(text(&call.answer()), "back");
}

#[test]
fn a_result_and_a_question_in_one_breath_are_a_result() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(elicits());
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    let result = json!({"jsonrpc": "2.0", "id": called.message["id"], "result": result});
    let question = json!({
        "jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": form("Who?"),
    });
    called.by.writes(&format!("{result}\n{question}\n"));
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
        let called = bridge.puppets.hears("tools/call");
        called.by.asks(json!(1), "elicitation/create", form("Who?"));
        waiting.push((called, call.answer()["result"].clone()));
    }
    // A call of a client without input capabilities needs no session of its own.
    let mut plain = bridge.modern().begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    called.text("plain");
    assert_eq!(text(&plain.answer()), "plain");
    for (number, (called, asked)) in waiting.iter().enumerate() {
        let answers = json!({only_key(asked): named("Ann")});
        let arguments = json!({"number": number});
        let mut again = client.begin_again("ask", arguments, &asked["requestState"], answers);
        assert_eq!(bridge.puppets.next().by.pid, called.by.pid);
        called.text("done");
        assert_eq!(text(&again.answer()), "done");
    }
}

#[test]
fn a_server_that_asks_for_folders_at_once_is_told_them_before_it_is_called() {
    let bridge = Bridge::new(asking().leaving("ping"));
    let listed = bridge.modern().request("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "ask", "the list does not wait for roots");
    // A client without roots gets no request for them.
    let mut call = bridge.modern().begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    let told = called.by.told();
    let opened = told.iter().find(|it| it["method"] == "initialize").unwrap();
    assert!(opened["params"]["capabilities"].get("roots").is_none(), "{opened}");
    called.text("without");
    assert_eq!(text(&call.answer()), "without");
    let client = bridge.modern().that_can(json!({"roots": {}}));
    let mut call = client.begin_call("ask", json!({"n": 1}));
    // The child sends its request as soon as the session is open, and responds to the ping afterwards.
    let looked = bridge.puppets.hears("ping");
    looked.by.asks(json!(1), "roots/list", json!({}));
    looked.result(json!({}));
    let asked = call.answer()["result"].clone();
    let key = only_key(&asked);
    assert_eq!(asked["inputRequests"][&key]["method"], "roots/list");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the call waits for the roots");
    let roots = json!({"roots": [{"uri": "file:///home"}]});
    let mut again = client.begin_again(
        "ask",
        json!({"n": 1}),
        &asked["requestState"],
        json!({key: roots.clone()}),
    );
    let answered = bridge.puppets.next();
    assert_eq!((&answered.message["id"], &answered.message["result"]), (&json!(1), &roots));
    let called = bridge.puppets.hears("tools/call");
    assert_eq!(called.by.pid, looked.by.pid);
    assert_eq!(called.message["params"]["arguments"], json!({"n": 1}));
    called.text("rooted");
    assert_eq!(text(&again.answer()), "rooted");
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream gets the call once");
}

#[test]
fn an_upstream_without_early_input_requests_is_called_at_once() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"roots": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let called = bridge.puppets.hears("tools/call");
    called.text("at once");
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
    let meanwhile = bridge.puppets.within(A_MOMENT).map(|heard| heard.message);
    assert!(meanwhile.is_none_or(|it| it["method"] == "notifications/cancelled"));
    looked.by.asks(json!(1), "roots/list", json!({}));
    looked.result(json!({}));
    let refused = loop {
        let told = bridge.puppets.next().message;
        assert_ne!(told["method"], "tools/call", "{told}");
        if told["id"] == 1 {
            break told;
        }
    };
    assert!(refused.get("error").is_some(), "{refused}");
    assert!(bridge.puppets.within(A_MOMENT).is_none_or(|it| it.message["method"] != "tools/call"));
}
