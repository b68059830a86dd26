//! Tests of input requests in both eras, listeners, progress, cancellation and timeouts.

use core::time::Duration;

use creole_proto::client::{
    CallOptions, CallRequest, ClientEvent, InputRequestError, InputRequestKey, Machine, OpenMode,
    Outbox,
};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{
    InputRequest, KeyedInputRequest, ListKind, TaskOutcome, TaskPreference, TaskState,
};
use creole_proto::operation::{
    Change, Event, InputResponses, Operation, Outcome, Payload, SubscriptionFilter,
};
use creole_proto::revision::Revision;
use creole_proto::server;
use creole_proto::wire::{Frame, Raw, ScanLimits, scan};

use super::pair::{MachinePair, client, everything, opening};
use super::plain::{endpoint, tool};

fn opened(revision: Revision) -> MachinePair {
    let mut pair = MachinePair::open("spec", opening(revision), endpoint);
    pair.events.clear();
    pair.sent.clear();
    pair.hold();
    pair
}

fn form() -> InputRequest {
    let schema = Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap();
    InputRequest::Form { message: "How many?".into(), schema }
}

#[test]
fn an_inline_input_request_is_delivered_and_its_response_is_sent() {
    let mut pair = opened(Revision::V2025_11_25);
    let call = pair.call(tool("t"));
    let started = pair.started.remove(0).key;
    pair.server.request_input(started, &form(), None, pair.now, &mut pair.to_server).unwrap();
    pair.exchange();
    let Some(ClientEvent::InputRequested {
        call: tool_call,
        key,
        request: input_request,
        task: None,
    }) = pair.events.pop()
    else {
        panic!("{:?}", pair.events)
    };
    assert_eq!((tool_call, input_request), (Some(call), form()));
    let response = Raw::parse(r#"{"action":"accept","content":{"n":1.0}}"#).unwrap();
    pair.client.respond(key, Ok(response.clone()), &mut pair.to_client);
    pair.carry();
    let Some(server::Action::InputResponse(_, Ok(received))) = pair.to_server.next_action() else {
        panic!()
    };
    assert_eq!(received, response);
}

#[test]
fn a_response_that_crosses_the_cancellation_of_its_input_request_is_awaited_once() {
    let mut pair = opened(Revision::V2025_11_25);
    pair.call(tool("t"));
    let started = pair.started.remove(0).key;
    pair.server.request_input(started, &form(), None, pair.now, &mut pair.to_server).unwrap();
    let awaits = |pair: &MachinePair, id: &str| {
        let response = format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"action":"cancel"}}}}"#);
        let Ok(Frame::One(fields)) = scan(response.as_bytes(), &ScanLimits::default()) else {
            panic!()
        };
        pair.server.is_awaited_response(&fields)
    };
    assert!(awaits(&pair, "creole-1") && !awaits(&pair, "creole-2"));
    pair.finish(started, Outcome::Complete(Payload::Empty));
    assert!(awaits(&pair, "creole-1"), "the late response is still expected");
    let late = br#"{"jsonrpc":"2.0","id":"creole-1","result":{"action":"cancel"}}"#;
    pair.server.receive(late, pair.now, &mut pair.to_server);
    assert!(pair.to_server.next_action().is_none(), "the late response has no effect");
    assert!(!awaits(&pair, "creole-1"));
}

#[test]
fn an_input_request_without_the_capability_is_not_allowed() {
    let mut machine = client("spec", opening(Revision::V2024_11_05));
    let mut out = Outbox::default();
    machine.open(Duration::ZERO, &mut out);
    let hello = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    machine.receive(hello, None, Duration::ZERO, &mut out);
    out.clear_frames();
    let rows = [
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":"a","result":{}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"elicitation/create","params":{"message":"m","requestedSchema":{}}}"#,
            "-32601",
        ),
        (r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#, "-32601"),
        (r#"{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"x"}}"#, "-32601"),
    ];
    for (asked, expected) in rows {
        machine.receive(asked.as_bytes(), None, Duration::ZERO, &mut out);
        let text = String::from_utf8(out.take_bytes()).unwrap();
        assert!(text.contains(expected), "{asked}: {text}");
    }
}

#[test]
fn a_server_with_a_progress_token_gets_progress_of_its_input_request() {
    let mut machine = client("spec", opening(Revision::V2025_06_18));
    let mut out = Outbox::default();
    machine.open(Duration::ZERO, &mut out);
    let hello = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    machine.receive(hello, None, Duration::ZERO, &mut out);
    for (token, is_notified) in [(r#","_meta":{"progressToken":"a\u0062"}"#, true), ("", false)] {
        out.clear_frames();
        let asked = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{{"message":"m","requestedSchema":{{}}{token}}}}}"#
        );
        machine.receive(asked.as_bytes(), None, Duration::ZERO, &mut out);
        let mut key = None;
        while let Some(event) = out.next_event() {
            if let ClientEvent::InputRequested { key: input_key, .. } = event {
                key = Some(input_key);
            }
        }
        let key = key.unwrap();
        machine.send_input_progress(key, &mut out);
        machine.send_input_progress(key, &mut out);
        machine.respond(key, Err(InputRequestError::declined("no")), &mut out);
        // No progress is sent for an input request after its response.
        machine.send_input_progress(key, &mut out);
        let text = String::from_utf8(out.take_bytes()).unwrap();
        let beat = |number: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"a\u0062","progress":{number}}}}}"#
            )
        };
        assert_eq!(text.matches("notifications/progress").count(), if is_notified { 2 } else { 0 });
        assert_eq!(text.contains(&beat(1)) && text.contains(&beat(2)), is_notified, "{text}");
    }
}

#[test]
fn an_input_request_without_the_capability_is_declined_and_reported_with_its_call() {
    let propose = Revision::V2025_11_25.rules();
    let nothing = OpenMode::Handshake { proposed_rules: propose, capabilities: Default::default() };
    let mut pair = MachinePair::open("spec", nothing, endpoint);
    pair.hold();
    let call = pair.call(tool("t"));
    let started = pair.started.remove(0).key;
    pair.server.request_input(started, &form(), None, pair.now, &mut pair.to_server).unwrap();
    pair.exchange();
    let event = ClientEvent::InputNotOffered { call: Some(call), request: form() };
    assert_eq!(pair.events.last(), Some(&event));
    assert!(pair.sent.last().is_some_and(|text| text.contains("-32601")), "{:?}", pair.sent);
    let second = pair.call(tool("t"));
    let started = pair.started.remove(0).key;
    pair.server
        .request_input(started, &InputRequest::Roots, None, pair.now, &mut pair.to_server)
        .unwrap();
    pair.exchange();
    // The input request cannot be attributed to one of the two calls.
    assert_ne!(call, second);
    let event = ClientEvent::InputNotOffered { call: None, request: InputRequest::Roots };
    assert_eq!(pair.events.last(), Some(&event));
}

#[test]
fn an_input_request_of_a_finished_call_is_cancelled_and_declined() {
    let mut pair = opened(Revision::V2025_06_18);
    let call = pair.call(tool("t"));
    let started = pair.started.remove(0).key;
    pair.server.request_input(started, &form(), None, pair.now, &mut pair.to_server).unwrap();
    pair.exchange();
    pair.sent.clear();
    pair.client.cancel(call, "enough", &mut pair.to_client);
    pair.exchange();
    assert!(pair.sent[0].contains("notifications/cancelled"), "{:?}", pair.sent);
    assert!(pair.sent[1].contains("-32603"), "{:?}", pair.sent);
    assert!(matches!(pair.events.last(), Some(ClientEvent::InputWithdrawn(_))));
    pair.client.respond(
        InputRequestKey(1),
        Err(InputRequestError::declined("no")),
        &mut pair.to_client,
    );
    assert!(pair.to_client.bytes().is_empty());
    assert_eq!(pair.outcome(call), None);
}

#[test]
fn an_input_request_inside_of_a_result_is_answered_by_a_new_call() {
    let mut pair = opened(Revision::V2026_07_28);
    let options = CallOptions { capabilities: everything(), ..CallOptions::default() };
    let request = CallRequest { options, ..tool("t") };
    let call = pair.call(request.clone());
    let input_requests = vec![KeyedInputRequest { key: "a\"b".into(), question: form() }];
    let state = Some("st\u{e4}te \"1\"".to_string());
    let started = pair.started.remove(0).key;
    pair.finish(
        started,
        Outcome::InputRequired { requests: input_requests.clone(), request_state: state.clone() },
    );
    assert_eq!(
        pair.outcome(call),
        Some(&Outcome::InputRequired { requests: input_requests, request_state: state.clone() })
    );
    let responses = Raw::parse(r#"{"a\"b":{"action":"accept", "content":{}}}"#).unwrap();
    let reentry = Some(InputResponses { responses: Some(responses), request_state: state });
    let repeated = CallRequest {
        options: CallOptions { input_responses: reentry.clone(), ..request.options },
        ..request
    };
    let second = pair.call(repeated);
    assert_ne!(call, second);
    assert_eq!(pair.started.remove(0).caller.input_responses, reentry);
}

#[test]
fn an_input_request_that_is_not_allowed_or_unknown_is_a_fault() {
    let rows = [
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}"#,
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"x/y"}}}"#,
        r#"{"resultType":"input_required"}"#,
        r#"{"resultType":"input_required","requestState":1}"#,
        r#"{"resultType":"task","taskId":"a","status":"working"}"#,
        r#"{"resultType":"sudden"}"#,
    ];
    for result in rows {
        let (mut machine, mut out) =
            (client("spec", opening(Revision::V2026_07_28)), Outbox::default());
        let call = machine.request(&tool("t"), Duration::ZERO, &mut out);
        let response = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call.0);
        machine.receive(response.as_bytes(), None, Duration::ZERO, &mut out);
        let Some(ClientEvent::CallDone(_, Outcome::Fail(fault))) = out.next_event() else {
            panic!("{result}")
        };
        assert_eq!(fault.kind, FaultKind::Internal, "{result}");
    }
}

#[test]
fn a_subscription_is_acknowledged_served_and_ended() {
    let mut pair = opened(Revision::V2026_07_28);
    let filter = SubscriptionFilter {
        tools: true,
        uris: vec!["test://a".into()],
        ..SubscriptionFilter::default()
    };
    let call = pair.call(CallRequest::new(Operation::Listen(filter.clone())));
    let started = pair.started.remove(0).key;
    let granted = SubscriptionFilter { tools: true, ..SubscriptionFilter::default() };
    pair.finish(started, Outcome::Complete(Payload::Listening(granted.clone())));
    let listening = Outcome::Complete(Payload::Listening(granted));
    assert_eq!(pair.outcome(call), Some(&listening));
    assert!(pair.client.is_open(call) && pair.client.deadline().is_none());
    let change = Change::List(ListKind::Tools);
    pair.server.announce(&change, &mut pair.to_server);
    pair.exchange();
    let event = ClientEvent::Changed { listener: Some(call), change };
    assert_eq!(pair.events.last(), Some(&event));
    pair.server.close_listeners(&mut pair.to_server);
    pair.exchange();
    assert_eq!(pair.events.last(), Some(&ClientEvent::ListenerEnded(call, None)));
    assert!(!pair.client.is_open(call));
}

#[test]
fn a_session_is_told_of_changes_and_its_logs() {
    let mut pair = opened(Revision::V2025_11_25);
    let change = Change::List(ListKind::Prompts);
    pair.server.announce(&change, &mut pair.to_server);
    pair.exchange();
    assert_eq!(pair.events.pop(), Some(ClientEvent::Changed { listener: None, change }));
}

#[test]
fn progress_comes_under_our_own_token_and_only_if_it_increases() {
    for revision in Revision::ALL {
        let mut pair = opened(revision);
        let options = CallOptions { progress: true, ..CallOptions::default() };
        let call = pair.call(CallRequest { options, ..tool("t") });
        let number = call.0;
        let mut values = Vec::new();
        for value in ["1", "1", "0.5", "2e0", "1e999", "\"3\""] {
            let notice = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{number},"progress":{value}}}}}"#
            );
            pair.client.receive(notice.as_bytes(), None, pair.now, &mut pair.to_client);
            while let Some(event) = pair.to_client.next_event() {
                if let ClientEvent::CallEvent(of, Event::Progress { progress, .. }) = event {
                    assert_eq!(of, call);
                    values.push(progress);
                }
            }
        }
        assert_eq!(values, [1.0, 2.0], "{revision:?}");
    }
}

#[test]
fn a_silent_call_times_out_and_progress_extends_it_up_to_the_limit() {
    let mut machine: Machine = client("spec", opening(Revision::V2026_07_28));
    let mut out = Outbox::default();
    let second = Duration::from_secs(1);
    let options = CallOptions {
        idle_timeout: Some(2 * second),
        total_timeout: Some(5 * second),
        ..CallOptions::default()
    };
    let call = machine.request(&CallRequest { options, ..tool("t") }, Duration::ZERO, &mut out);
    out.clear_frames();
    for now in 1..5 {
        let notice = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{},"progress":{now}}}}}"#,
            call.0
        );
        machine.receive(notice.as_bytes(), None, now * second, &mut out);
        machine.tick(now * second, &mut out);
        assert!(machine.is_open(call), "after {now} seconds");
    }
    assert_eq!(machine.deadline(), Some(5 * second));
    machine.tick(5 * second, &mut out);
    let Some(ClientEvent::CallDone(done, Outcome::Fail(fault))) = out.next_event() else {
        panic!()
    };
    assert_eq!((done, fault.kind), (call, FaultKind::Timeout));
    assert!(String::from_utf8(out.take_bytes()).unwrap().contains("notifications/cancelled"));
    let late = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[]}}}}"#, call.0);
    machine.receive(late.as_bytes(), None, 6 * second, &mut out);
    assert_eq!(out.next_event(), None);
}

#[test]
fn the_end_of_the_connection_is_the_end_of_every_call() {
    for revision in Revision::ALL {
        let mut pair = opened(revision);
        let calls = [pair.call(tool("t")), pair.call(tool("u"))];
        let fault = Fault::new(FaultKind::BackendUnavailable, "it died");
        pair.client.close(fault.clone(), &mut pair.to_client);
        pair.exchange();
        let after = pair.call(tool("t"));
        for call in calls {
            assert_eq!(pair.outcome(call), Some(&Outcome::Fail(fault.clone())));
        }
        assert!(matches!(pair.outcome(after), Some(Outcome::Fail(_))));
    }
}

#[test]
fn a_late_response_to_an_earlier_session_on_the_channel_is_dropped() {
    let mut probe = client("spec", opening(Revision::V2026_07_28));
    let mut out = Outbox::default();
    let probed = probe.open(Duration::ZERO, &mut out);
    let mut machine = client("spec", opening(Revision::V2025_11_25)).with_ids_after(&probe);
    let call = machine.open(Duration::ZERO, &mut out);
    assert_ne!(probed, call);
    let late =
        format!(r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32601,"message":"m"}}}}"#, probed.0);
    machine.receive(late.as_bytes(), None, Duration::ZERO, &mut out);
    assert_eq!(out.next_event(), None);
    assert!(machine.is_open(call));
}

#[test]
fn an_input_request_of_a_task_is_not_assigned_to_another_call() {
    let mut pair = opened(Revision::V2025_11_25);
    pair.call(tool("t"));
    let asked = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}}"#;
    pair.client.receive(asked.as_bytes(), None, pair.now, &mut pair.to_client);
    let Some(ClientEvent::InputRequested { call: None, task: Some(task), .. }) =
        pair.to_client.next_event()
    else {
        panic!()
    };
    assert_eq!(task, "x");
}

#[test]
fn tasks_of_both_generations_are_read_into_one_shape() {
    let rows = [
        (
            Revision::V2025_11_25,
            r#"{"task":{"taskId":"a","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z","ttl":60000,"pollInterval":5}}"#,
        ),
        (
            Revision::V2026_07_28,
            r#"{"resultType":"task","taskId":"a","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z","ttlMs":60000,"pollIntervalMs":5}"#,
        ),
    ];
    let mut read = Vec::new();
    for (revision, result) in rows {
        let mut pair = opened(revision);
        let options = CallOptions {
            capabilities: everything(),
            task_preference: TaskPreference::Requested { ttl_ms: None },
            ..CallOptions::default()
        };
        let call = pair.call(CallRequest { options, ..tool("t") });
        let response = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, call.0);
        pair.client.receive(response.as_bytes(), None, pair.now, &mut pair.to_client);
        let Some(ClientEvent::CallDone(_, Outcome::Complete(Payload::TaskCreated(task)))) =
            pair.to_client.next_event()
        else {
            panic!("{revision:?}")
        };
        read.push(task);
    }
    assert_eq!(read[0], read[1]);
    assert_eq!((read[0].ttl_ms, read[0].poll_ms), (60_000, 5));
    assert_eq!(read[0].updated_ms - read[0].created_ms, 1000);
}

#[test]
fn the_result_of_a_task_is_kept_verbatim() {
    let mut pair = opened(Revision::V2026_07_28);
    let call = pair.call(CallRequest::new(Operation::GetTask { id: "a".into() }));
    let end = r#"{"content":[{"type":"new", "x":1e400}]}"#;
    let response = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"taskId":"a","status":"completed","result":{end}}}}}"#,
        call.0
    );
    pair.client.receive(response.as_bytes(), None, pair.now, &mut pair.to_client);
    let Some(ClientEvent::CallDone(_, Outcome::Complete(Payload::Task(task)))) =
        pair.to_client.next_event()
    else {
        panic!()
    };
    let TaskState::Ended(TaskOutcome::Relayed(relayed)) = &task.state else { panic!("{task:?}") };
    assert_eq!(relayed.result().as_str(), end);
}

#[test]
fn a_handshake_with_a_version_that_has_none_is_refused_and_says_why() {
    for version in ["2026-07-28", "1.0", "2031-01-01"] {
        let mut machine = client("spec", opening(Revision::V2025_11_25));
        let mut out = Outbox::default();
        let waits = machine.request(&tool("t"), Duration::ZERO, &mut out);
        let call = machine.open(Duration::ZERO, &mut out).0;
        let hello = format!(
            r#"{{"jsonrpc":"2.0","id":{call},"result":{{"protocolVersion":"{version}","capabilities":{{}}}}}}"#
        );
        machine.receive(hello.as_bytes(), None, Duration::ZERO, &mut out);
        let Some(ClientEvent::OpenFailed(fault)) = out.next_event() else { panic!("{version}") };
        assert_eq!(fault.kind, FaultKind::UnsupportedVersion);
        assert!(fault.detail.contains(version), "{}", fault.detail);
        assert!(matches!(out.next_event(), Some(ClientEvent::CallDone(done, _)) if done == waits));
    }
}

#[test]
fn the_capabilities_of_the_client_are_encoded_for_the_revision() {
    let rows = [
        (Revision::V2024_11_05, r#""capabilities":{"sampling":{},"roots":{"listChanged":false}}"#),
        (Revision::V2025_06_18, r#""capabilities":{"elicitation":{},"sampling":{},"roots""#),
        (Revision::V2025_11_25, r#""capabilities":{"elicitation":{"form":{},"url":{}},"sampling""#),
    ];
    for (revision, expected) in rows {
        let pair = MachinePair::open("spec", opening(revision), endpoint);
        assert!(pair.sent[0].contains(expected), "{}", pair.sent[0]);
    }
    let mut pair = opened(Revision::V2026_07_28);
    let options = CallOptions { capabilities: everything(), ..CallOptions::default() };
    pair.call(CallRequest { options, ..tool("t") });
    let expected = r#""extensions":{"io.modelcontextprotocol/tasks":{}}"#;
    assert!(pair.sent[0].contains(expected), "{}", pair.sent[0]);
}

#[test]
fn chatter_on_a_calls_own_channel_is_no_answer_and_a_monster_is_one() {
    let mut machine = client("spec", opening(Revision::V2026_07_28));
    let mut out = Outbox::default();
    let call = machine.request(&tool("t"), Duration::ZERO, &mut out);
    machine.receive(b"keep-alive", Some(call), Duration::ZERO, &mut out);
    assert!(matches!(out.next_event(), Some(ClientEvent::Violation(_))));
    assert!(machine.is_open(call));
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    let huge = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"x":{deep}}}}}"#, call.0);
    machine.receive(huge.as_bytes(), Some(call), Duration::ZERO, &mut out);
    assert!(matches!(out.next_event(), Some(ClientEvent::Violation(_))));
    assert!(matches!(out.next_event(), Some(ClientEvent::CallDone(_, Outcome::Fail(_)))));
}
