//! Tests of input rounds: what an upstream receives while it waits, and what it may not send afterwards.

use creole_acceptance::gateway::ScriptedReplies;
use serde_json::json;

use crate::{A_MOMENT, Bridge, asking, form, named, only_key, text};

#[test]
fn an_upstream_with_a_progress_token_gets_progress_while_its_input_request_is_open() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    let mut request = form("Who?");
    request["_meta"] = json!({"progressToken": "its own"});
    received.by.asks(json!(1), "elicitation/create", request);
    let sent = call.answer()["result"].clone();
    let request = &sent["inputRequests"][only_key(&sent)]["params"];
    assert!(
        request.get("_meta").is_none(),
        "the upstream's token must not reach the client: {request}"
    );
    for beat in 1..=2 {
        let message = bridge.puppets.hears("notifications/progress");
        assert_eq!(message.message["params"]["progressToken"], "its own");
        assert_eq!(message.message["params"]["progress"], beat);
    }
    let responses = json!({only_key(&sent): named("Ann")});
    let mut retry = client.begin_again("ask", json!({}), &sent["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
    received.text("Hello, Ann!");
    assert_eq!(text(&retry.answer()), "Hello, Ann!");
}

#[test]
fn the_last_missed_progress_is_sent_to_the_returning_client() {
    let bridge = Bridge::new(asking());
    let client = bridge
        .modern()
        .that_can(json!({"elicitation": {}}))
        .with_meta(json!({"progressToken": "p"}));
    for is_over in [false, true] {
        let mut call = client.begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        let token = &received.message["params"]["_meta"]["progressToken"];
        received.by.asks(json!(1), "elicitation/create", form("Who?"));
        let request = call.answer()["result"].clone();
        for progress in [1, 2] {
            let message = json!({"progressToken": token, "progress": progress});
            received.by.tells("notifications/progress", &message);
        }
        if is_over {
            received.text("done");
            assert!(
                bridge.puppets.next().message.get("error").is_some(),
                "too late to be answered"
            );
        }
        // The gateway has processed it once it has responded to the later ping.
        received.by.asks(json!("ping"), "ping", json!({}));
        assert_eq!(bridge.puppets.next().message["id"], "ping");
        let responses = json!({only_key(&request): named("Ann")});
        let mut retry = client.begin_again("ask", json!({}), &request["requestState"], responses);
        if !is_over {
            assert_eq!(bridge.puppets.next().message["result"], named("Ann"));
            received.text("done");
        }
        let (before, response) = retry.all();
        assert_eq!(text(&response), "done");
        let messages: Vec<_> = before.iter().map(|value| value["params"].clone()).collect();
        assert_eq!(messages, [json!({"progressToken": "p", "progress": 2})]);
    }
}

#[test]
fn a_client_may_return_immediately() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let mut call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    for round in 1..=50 {
        received.by.asks(json!(round), "elicitation/create", form("More?"));
        // The response stream of the last request has not ended yet.
        let request = call.message()["result"].clone();
        let responses = json!({only_key(&request): named(&format!("{round}"))});
        call = client.begin_again("ask", json!({}), &request["requestState"], responses);
        let response = bridge.puppets.next().message;
        assert_eq!(response["result"]["content"]["name"], format!("{round}"));
    }
    received.text("enough");
    assert_eq!(text(&call.answer()), "enough");
}

#[test]
fn an_upstream_that_sends_input_requests_after_a_cancellation_is_refused_and_replaced() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let call = client.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    call.hang_up();
    bridge.puppets.hears("notifications/cancelled");
    received.text("too late");
    received.by.asks(json!("after"), "elicitation/create", form("Who?"));
    let refused = bridge.puppets.next().message;
    assert_eq!(refused["id"], "after");
    assert!(refused.get("error").is_some(), "{refused}");
    // Its next input request would be attributed to the next call.
    let mut call = client.begin_call("ask", json!({}));
    let next = bridge.puppets.hears("tools/call");
    assert_ne!(next.by.pid, received.by.pid);
    next.text("fresh");
    assert_eq!(text(&call.answer()), "fresh");
    assert!(bridge.puppets.within(A_MOMENT).is_none());
}

#[test]
fn a_url_elicitation_error_becomes_an_input_request_and_the_call_is_repeated() {
    let bridge = Bridge::new(ScriptedReplies::new("2025-11-25", json!({"tools": {}}), &["ask"]));
    let client = bridge.modern().that_can(json!({"elicitation": {"url": {}}}));
    let page = json!({"mode": "url", "elicitationId": "e", "url": "https://a.example/", "message": "Sign in"});
    let pages = json!({"elicitations": [page]});
    let mut call = client.begin_call("ask", json!({}));
    for _ in 0..2 {
        bridge.puppets.hears("tools/call").error(-32042, "a page has to be visited", &pages);
        let request = call.answer()["result"].clone();
        let key = only_key(&request);
        let received = &request["inputRequests"][&key]["params"];
        assert_eq!((&received["mode"], &received["url"]), (&page["mode"], &page["url"]));
        assert!(received.get("elicitationId").is_none(), "{received}");
        let visited = json!({key: {"action": "accept"}});
        call = client.begin_again("ask", json!({}), &request["requestState"], visited);
    }
    bridge.puppets.hears("tools/call").text("signed in");
    assert_eq!(text(&call.answer()), "signed in");
    let forms = bridge.modern().that_can(json!({"elicitation": {"form": {}}}));
    let mut call = forms.begin_call("ask", json!({}));
    bridge.puppets.hears("tools/call").error(-32042, "a page has to be visited", &pages);
    let response = call.answer();
    let error = &response["error"];
    assert_eq!(error["code"], -32021, "{response}");
    assert_eq!(error["data"]["requiredCapabilities"], json!({"elicitation": {"url": {}}}));
}
