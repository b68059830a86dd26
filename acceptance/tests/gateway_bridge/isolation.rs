//! Tests of the isolation of callers: no caller can see, answer or disturb another caller's calls.

use std::fs;

use creole_acceptance::gateway::{
    HandshakeClient, ReceivedMessage, ScriptedReplies, StatelessClient,
};
use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};

use crate::{A_MOMENT, ALICE, BOB, Bridge, KEYS, asking, form, named, only_key, text};

/// The digest of Alice's key, and another key for her.
const ALICES_DIGEST: &str = "fdedecbe137a31fb1ee084b0a8a53f3a6247bff209ab14e288af55aac40e5ed8";
const NEW_KEY: &str = "alice-newer-key-of-the-test";
const NEW_DIGEST: &str = "1d7c3a68546d6045ae80065d02a2336f524a15f2dba38f3a505d638779102e1a";

/// Alice's call with its input request.
fn asked_alice(bridge: &Bridge) -> (StatelessClient, ReceivedMessage, Value) {
    let alice = bridge.modern().that_can(json!({"elicitation": {}})).with_key(ALICE);
    let mut call = alice.begin_call("ask", json!({"a": 1, "b": [2.0]}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Alice?"));
    let request = call.answer()["result"].clone();
    (alice, received, request)
}

/// Asserts that the original caller's input response is still accepted after the attempts of others.
#[track_caller]
fn is_still_answered(
    bridge: &Bridge,
    alice: &StatelessClient,
    call: &ReceivedMessage,
    request: &Value,
) {
    assert!(bridge.puppets.within(A_MOMENT).is_none(), "the upstream got no message");
    let responses = json!({only_key(request): named("Alice")});
    // The same arguments in another notation.
    let arguments = json!({"b": [2], "a": 1.0});
    let mut retry = alice.begin_again("ask", arguments, &request["requestState"], responses);
    assert_eq!(bridge.puppets.next().message["result"], named("Alice"));
    call.text("Hello, Alice!");
    assert_eq!(text(&retry.answer()), "Hello, Alice!");
}

#[track_caller]
fn is_refused(response: &Value) {
    let error = &response["error"];
    assert_eq!(error["code"], -32602, "{response}");
    assert_eq!(error["message"], "Invalid params: `requestState` is not valid for this request");
    assert_eq!(error["data"]["reason"], "state_invalid", "{response}");
}

#[test]
fn a_modified_request_state_is_refused_and_the_valid_retry_still_works() {
    let bridge = Bridge::with_keys(asking());
    let (alice, call, request) = asked_alice(&bridge);
    let state = request["requestState"].as_str().unwrap();
    let arguments = json!({"a": 1, "b": [2.0]});
    let mut forged = vec![format!("{state}x"), state[..state.len() - 1].to_owned(), String::new()];
    for index in (0..state.len()).step_by(state.len() / 12) {
        let other = if &state[index..=index] == "A" { "B" } else { "A" };
        forged.push(format!("{}{other}{}", &state[..index], &state[index + 1..]));
    }
    forged.push("x".repeat(1 << 19));
    for state in forged {
        let responses = json!({only_key(&request): named("Eve")});
        is_refused(&alice.again("ask", arguments.clone(), &json!(state), responses));
    }
    is_still_answered(&bridge, &alice, &call, &request);
}

#[test]
fn state_of_another_is_refused_and_its_owner_can_still_use_it() {
    let bridge = Bridge::with_keys(asking());
    let (alice, call, request) = asked_alice(&bridge);
    let arguments = json!({"a": 1, "b": [2.0]});
    let bob = alice.with_key(BOB);
    let responses = json!({only_key(&request): named("Bob")});
    is_refused(&bob.again("ask", arguments, &request["requestState"], responses));
    is_still_answered(&bridge, &alice, &call, &request);
}

#[test]
fn state_of_another_call_is_refused() {
    let show = ScriptedReplies::new("2025-06-18", json!({"tools": {}}), &["ask", "other"]);
    let bridge = Bridge::with_keys(show);
    let (alice, call, request) = asked_alice(&bridge);
    let state = &request["requestState"];
    let responses = json!({only_key(&request): named("Alice")});
    let others = [
        ("ask", json!({"a": 1, "b": [3]})),
        ("ask", json!({"a": 1})),
        ("other", json!({"a": 1, "b": [2.0]})),
    ];
    for (tool, arguments) in others {
        is_refused(&alice.again(tool, arguments, state, responses.clone()));
    }
    is_still_answered(&bridge, &alice, &call, &request);
}

#[test]
fn two_callers_never_share_a_session() {
    let bridge = Bridge::with_keys(asking());
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let mut pids = Vec::new();
        for key in [ALICE, BOB, ALICE] {
            let client = bridge.modern().that_can(capabilities.clone()).with_key(key);
            let mut call = client.begin_call("ask", json!({}));
            let received = bridge.puppets.hears("tools/call");
            received.text("hello");
            assert_eq!(text(&call.answer()), "hello");
            pids.push(received.by.pid);
        }
        assert_ne!(pids[0], pids[1], "Bob must not get Alice's session");
        assert_eq!(pids[0], pids[2], "Alice gets her session again");
    }
}

#[test]
fn input_requests_reach_only_the_session_of_their_call() {
    let bridge = Bridge::with_keys(asking());
    let open = |key| {
        let address = bridge.gateway.address();
        HandshakeClient::open(address, "2025-06-18", json!({"elicitation": {}}), Some(key))
    };
    let mut in_flight = Vec::new();
    for (key, who) in [(ALICE, "alice"), (ALICE, "alice again"), (BOB, "bob")] {
        let client = open(key);
        let params = json!({"name": "ask", "arguments": {"who": who}});
        let call = client.begin(&json!(1), "tools/call", &params);
        let received = bridge.puppets.hears("tools/call");
        in_flight.push((client, call, received, who));
    }
    let pids: Vec<_> = in_flight.iter().map(|(_, _, received, _)| received.by.pid).collect();
    assert!(pids[0] != pids[1] && pids[0] != pids[2] && pids[1] != pids[2], "{pids:?}");
    for (_, _, received, who) in in_flight.iter().rev() {
        received.by.asks(json!(1), "elicitation/create", form(who));
    }
    for (client, call, received, who) in &mut in_flight {
        let request = call.message();
        assert_eq!(request["method"], "elicitation/create");
        assert_eq!(request["params"]["message"], *who);
        client.tell(&json!({"jsonrpc": "2.0", "id": request["id"], "result": named(who)}));
        let response = bridge.puppets.next();
        assert_eq!((response.by.pid, &response.message["result"]), (received.by.pid, &named(who)));
        received.text(who);
        assert_eq!(text(&call.answer()), *who);
    }
}

#[test]
fn the_same_id_and_the_same_token_of_two_callers_do_not_collide() {
    let bridge = Bridge::new(asking());
    let client = bridge.modern().with_meta(json!({"progressToken": 7}));
    let calls: Vec<_> = [json!(1), json!("1"), json!(1)]
        .into_iter()
        .enumerate()
        .map(|(number, id)| {
            let params = json!({"name": "ask", "arguments": {"number": number}});
            let call = client.begin(&id, "tools/call", params);
            (id, call, bridge.puppets.hears("tools/call"))
        })
        .collect();
    let mut tokens = Vec::new();
    for (number, (_, _, received)) in calls.iter().enumerate() {
        let token = &received.message["params"]["_meta"]["progressToken"];
        received.by.tells(
            "notifications/progress",
            &json!({"progressToken": token, "progress": number + 1, "message": number.to_string()}),
        );
        tokens.push(token.clone());
        received.text(&number.to_string());
    }
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2], "{tokens:?}");
    for (number, (id, mut call, _)) in calls.into_iter().enumerate() {
        let (before, response) = call.all();
        assert_eq!((&response["id"], text(&response)), (&id, &*number.to_string()));
        assert_eq!(before.len(), 1, "{before:?}");
        let message = &before[0]["params"];
        assert_eq!(
            (&message["progressToken"], &message["message"]),
            (&json!(7), &json!(number.to_string()))
        );
    }
}

#[test]
fn another_key_of_the_same_principal_continues_a_call_and_that_of_another_does_not() {
    let upstream = "[upstreams.behind]\nprefix = \"\"\n";
    let bridge = Bridge::configured(asking(), &format!("{KEYS}{upstream}"));
    let client = bridge.modern().that_can(json!({"elicitation": {}}));
    let (alice, bob) = (client.with_key(ALICE), client.with_key(BOB));
    let mut call = alice.begin_call("ask", json!({}));
    let received = bridge.puppets.hears("tools/call");
    received.by.asks(json!(1), "elicitation/create", form("Who?"));
    let request = call.answer()["result"].clone();
    // Alice gets a new key while the server waits for her.
    let command = json!(bridge.puppets.command());
    let renewed = KEYS.replace(ALICES_DIGEST, NEW_DIGEST);
    bridge.rewrite(&format!("{renewed}{upstream}command = {command}\n"));
    let renewed = client.with_key(NEW_KEY);
    eventually(
        || bridge.gateway.log(),
        || renewed.request("tools/list", json!({})).get("result").is_some(),
    );
    let answers = || json!({only_key(&request): named("Ann")});
    let state = &request["requestState"];
    assert_eq!(bob.again("ask", json!({}), state, answers())["error"]["code"], -32602);
    let mut retry = renewed.begin_again("ask", json!({}), state, answers());
    let response = bridge.puppets.next();
    assert_eq!((response.by.pid, &response.message["result"]), (received.by.pid, &named("Ann")));
    received.text("Hello, Ann!");
    assert_eq!(text(&retry.answer()), "Hello, Ann!");
}

#[test]
fn with_a_session_per_call_no_two_calls_share_one() {
    let upstream = "[upstreams.behind]\nprefix = \"\"\naffinity = \"request\"\n";
    let bridge = Bridge::configured(asking(), &format!("{KEYS}{upstream}"));
    let mut seen = Vec::new();
    for client in [bridge.modern(), bridge.modern().that_can(json!({"elicitation": {}}))] {
        for key in [ALICE, ALICE, BOB] {
            let mut call = client.with_key(key).begin_call("ask", json!({}));
            let received = bridge.puppets.hears("tools/call");
            received.text("done");
            assert_eq!(text(&call.answer()), "done");
            assert!(!seen.contains(&received.by.pid), "used before");
            seen.push(received.by.pid);
        }
    }
}

#[test]
fn each_client_session_has_its_own_upstream_session_if_configured() {
    let upstream = "[upstreams.behind]\nprefix = \"\"\naffinity = \"session\"\n";
    let bridge = Bridge::configured(asking(), &format!("{KEYS}{upstream}"));
    let process = |client: &StatelessClient| {
        let mut call = client.begin_call("ask", json!({}));
        let received = bridge.puppets.hears("tools/call");
        received.text("done");
        assert_eq!(text(&call.answer()), "done");
        received.by.pid
    };
    for client in [bridge.modern(), bridge.modern().that_can(json!({"elicitation": {}}))] {
        let named = |key: &str, name: &str| {
            process(&client.with_key(key).with_meta(json!({"creole/session": name})))
        };
        let seen = [named(ALICE, "a"), named(ALICE, "b"), named(BOB, "a")];
        assert!(seen[0] != seen[1] && seen[1] != seen[2] && seen[0] != seen[2], "{seen:?}");
        let again = [named(ALICE, "a"), named(ALICE, "b"), named(BOB, "a")];
        assert_eq!(seen, again);
        let nameless = || process(&client.with_key(ALICE));
        let nameless = [nameless(), nameless()];
        assert!(nameless[0] != nameless[1] && !nameless.iter().any(|value| seen.contains(value)));
        for invalid in [json!(7), json!(""), json!("x".repeat(129))] {
            let client = client.with_key(ALICE).with_meta(json!({"creole/session": invalid}));
            let refused = client.begin_call("ask", json!({})).answer();
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
    }
}

#[test]
fn each_handshake_session_has_its_own_upstream_session_if_configured() {
    let upstream = "[upstreams.behind]\nprefix = \"\"\naffinity = \"session\"\n";
    let bridge = Bridge::configured(asking(), &format!("{KEYS}{upstream}"));
    let open =
        || HandshakeClient::open(bridge.gateway.address(), "2025-06-18", json!({}), Some(ALICE));
    let clients = [open(), open()];
    let process = |client: &HandshakeClient| {
        let mut call = client.begin(&json!(1), "tools/call", &json!({"name": "ask"}));
        let received = bridge.puppets.hears("tools/call");
        received.text("done");
        assert_eq!(text(&call.answer()), "done");
        received.by.pid
    };
    let seen = clients.each_ref().map(process);
    assert_ne!(seen[0], seen[1], "each of Alice's clients has its own session");
    assert_eq!(seen, clients.each_ref().map(process));
}

#[test]
fn state_outlives_one_change_of_the_key_and_not_two() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    let change = |digits: &str| {
        let fresh = folder.path().join("fresh");
        fs::write(&fresh, digits.repeat(32)).unwrap();
        fs::rename(fresh, &keys).unwrap();
    };
    change("01");
    let state = format!("[state]\nkeys_file = {}\n", json!(keys));
    let upstream = "[upstreams.behind]\nprefix = \"\"\n";
    let bridge = Bridge::configured(asking(), &format!("{KEYS}{state}{upstream}"));
    // Each reload is logged.
    let told = || bridge.gateway.log().matches("was reloaded").count();
    let changed = |digits: &str| {
        let before = told();
        change(digits);
        eventually(|| bridge.gateway.log(), || told() != before);
    };
    let (alice, call, request) = asked_alice(&bridge);
    changed("02");
    is_still_answered(&bridge, &alice, &call, &request);
    let (alice, _called, request) = asked_alice(&bridge);
    changed("03");
    changed("04");
    let responses = json!({only_key(&request): named("Alice")});
    let refused =
        alice.again("ask", json!({"a": 1, "b": [2.0]}), &request["requestState"], responses);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}
