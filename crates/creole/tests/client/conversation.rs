//! Tests of the behaviour that all transports share, in both eras.

use creole::client::LineServer;
use creole::internal::client::{CallEvent, CallStep, Connection};
use creole::proto::client::ClientLimits;
use creole::proto::fault::FaultKind;
use creole::proto::operation::{Event, InputResponses, Outcome};
use creole::proto::revision::Era;
use creole::proto::wire::Raw;
use creole::stream::memory_pair;
use serde_json::json;
use std::time::Duration;
use tokio::time::timeout;

use crate::support::{
    LONG, ToolWatch, call, call_answering, child, fault, open, open_child, open_within, server,
    text, tool,
};

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// A connection to a server in the same process.
async fn inside(era: Era, watch: &ToolWatch) -> Connection {
    let (near, far) = memory_pair();
    let service = server(watch).start();
    tokio::spawn(async move {
        let (source, sink) = far.split();
        service.serve(source, sink).await
    });
    let (source, sink) = near.split();
    open(LineServer::new("inside", source, sink), era).await.unwrap()
}

async fn both(era: Era) -> [Connection; 2] {
    [inside(era, &ToolWatch::default()).await, open_child(&child(), era).await.unwrap()]
}

#[tokio::test]
async fn servers_are_greeted_and_called() {
    for era in ERAS {
        for connection in both(era).await {
            assert_eq!(connection.greeting().rules.era, era);
            assert_eq!(connection.greeting().server_info.identity.name, "test");
            let outcome = call(&connection, tool("echo", json!({"message": "hi"}))).await;
            assert_eq!(text(outcome), "hi");
            connection.ping().await.unwrap();
            connection.close().await;
        }
    }
}

#[tokio::test]
async fn calls_at_the_same_time_get_their_own_answers() {
    for era in ERAS {
        for connection in both(era).await {
            let mut calls = Vec::new();
            for number in 0..100 {
                let connection = connection.clone();
                calls.push(tokio::spawn(async move {
                    let message = number.to_string();
                    let outcome =
                        call(&connection, tool("echo", json!({"message": message}))).await;
                    assert_eq!(text(outcome), message);
                }));
            }
            for call in calls {
                call.await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn progress_is_delivered_before_the_response() {
    for era in ERAS {
        for connection in both(era).await {
            let mut seen = Vec::new();
            let on_news = |news| {
                if let CallEvent::Event(Event::Progress { progress, .. }) = news {
                    seen.push(progress);
                }
            };
            let outcome = timeout(LONG, connection.call(tool("tell", json!({})), on_news)).await;
            assert_eq!(text(outcome.unwrap()), "told");
            assert_eq!(seen, [1.0, 2.0, 3.0]);
        }
    }
}

#[tokio::test]
async fn a_handshake_server_sends_an_input_request_during_a_call() {
    for connection in both(Era::Handshake).await {
        let request = tool("ask", json!({}));
        let outcome = call_answering(&connection, request, json!({"name": "Ada"})).await;
        assert_eq!(text(outcome), "hello \"Ada\"");
        // Dropping the input request declines it, and the call does not wait.
        let outcome = call(&connection, tool("ask", json!({}))).await;
        assert!(!matches!(outcome, Outcome::InputRequired { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_stateless_server_ends_the_call_with_its_input_request() {
    for connection in both(Era::Stateless).await {
        let outcome = call(&connection, tool("ask", json!({}))).await;
        let Outcome::InputRequired { requests, request_state } = outcome else {
            panic!("{outcome:?}")
        };
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        let answers = Raw::from_value(&json!({requests[0].key.as_str(): answer}));
        let mut again = tool("ask", json!({}));
        again.options.input_responses =
            Some(InputResponses { responses: Some(answers), request_state });
        assert_eq!(text(call(&connection, again).await), "hello \"Ada\"");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    for era in ERAS {
        let watch = ToolWatch::default();
        let connection = inside(era, &watch).await;
        let mut calling = connection.start_call(tool("wait", json!({})));
        let step = timeout(LONG, calling.next()).await.unwrap();
        assert!(matches!(step, CallStep::Event(CallEvent::Event(_))), "{step:?}");
        timeout(LONG, watch.started.notified()).await.unwrap();
        drop(calling);
        timeout(LONG, watch.dropped.notified()).await.unwrap();
        assert_eq!(connection.in_flight(), 0);
        connection.ping().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_server_times_out_in_spite_of_progress() {
    for era in ERAS {
        let watch = ToolWatch::default();
        let connection = inside(era, &watch).await;
        let mut request = tool("wait", json!({}));
        request.options.idle_timeout = Some(Duration::from_secs(60));
        let fault = fault(connection.call_without_input(request).await);
        assert_eq!(fault.kind, FaultKind::Timeout);
        assert_eq!(fault.detail, "`inside` did not respond in time");
        watch.dropped.notified().await;
    }
}

#[tokio::test]
async fn the_end_of_a_connection_ends_its_calls() {
    let connection = inside(Era::Handshake, &ToolWatch::default()).await;
    let mut received = connection.start_call(tool("wait", json!({})));
    connection.close().await;
    let outcome = timeout(LONG, received.outcome(drop)).await.unwrap();
    assert_eq!(fault(outcome).kind, FaultKind::BackendUnavailable);
    let closed = timeout(LONG, connection.wait_closed()).await.unwrap();
    assert!(!closed.session_lost);
    let later = fault(call(&connection, tool("echo", json!({}))).await);
    assert_eq!(later.detail, "the connection to `inside` was closed");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_the_opening_is_not_waited_for() {
    let (near, _far) = memory_pair();
    let (source, sink) = near.split();
    let limits =
        ClientLimits { handshake_timeout: Duration::from_secs(5), ..ClientLimits::default() };
    let server = LineServer::new("mute", source, sink);
    let fault = open_within(server, Era::Handshake, limits).await.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Timeout);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_of_which_every_second_is_dropped_leak_nothing() {
    for era in ERAS {
        let connection = open_child(&child(), era).await.unwrap();
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..1000 {
            let connection = connection.clone();
            calls.spawn(async move {
                let message = number.to_string();
                let mut calling = connection.start_call(tool("echo", json!({"message": message})));
                if number % 2 == 0 {
                    let outcome = timeout(LONG, calling.outcome(drop)).await.unwrap();
                    // Calls beyond the concurrency limit fail with the fault `Busy`.
                    if !matches!(&outcome, Outcome::Fail(fault) if fault.kind == FaultKind::Busy) {
                        assert_eq!(text(outcome), message);
                    }
                }
            });
        }
        while let Some(call) = calls.join_next().await {
            call.unwrap();
        }
        assert_eq!(connection.in_flight(), 0);
        // The test runner's banner is the only protocol violation.
        assert!(connection.violation_count() <= 1, "{}", connection.violation_count());
        connection.ping().await.unwrap();
    }
}
