//! Tests of servers over HTTP: our own endpoint on a real socket, in both eras.

use std::net::SocketAddr;

use creole::client::HttpAddress;
use creole::internal::client::{CallEvent, CallStep, Connection, HttpServer, ServerNotification};
use creole::proto::client::CallRequest;
use creole::proto::fault::FaultKind;
use creole::proto::model::ListKind;
use creole::proto::operation::{
    Change, Event, InputResponses, Operation, Outcome, Payload, SubscriptionFilter,
};
use creole::proto::revision::Era;
use creole::proto::wire::Raw;
use creole::serve::http::{
    Drain, EndpointSettings, HttpLimits, Listener, McpEndpoint, Method, OriginGuard, Route, Router,
};
use creole::{Registry, Tool};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{LONG, ToolWatch, call, call_answering, fault, open, server, text, tool};

const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

/// Serves on its own port.
async fn serve(watch: &ToolWatch) -> (SocketAddr, Registry) {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    let address = listener.address().unwrap();
    let service = server(watch).start();
    let registry = service.registry().clone();
    let endpoint = McpEndpoint::new(service, EndpointSettings::default());
    let methods = [Method::POST, Method::GET, Method::DELETE];
    let router = Router::new(OriginGuard::loopback(), Drain::new());
    tokio::spawn(listener.serve(router.route(Route::new("/mcp", &methods, endpoint))));
    (address, registry)
}

fn target(address: SocketAddr) -> HttpAddress {
    HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap()
}

async fn connect(era: Era, watch: &ToolWatch) -> Connection {
    let (address, _) = serve(watch).await;
    open(HttpServer::new(target(address)), era).await.unwrap()
}

#[tokio::test]
async fn servers_are_greeted_and_called() {
    for era in ERAS {
        let connection = connect(era, &ToolWatch::default()).await;
        assert_eq!(connection.greeting().rules.era, era);
        for message in ["hi", "grüße", ""] {
            let outcome = call(&connection, tool("echo", json!({"message": message}))).await;
            assert_eq!(text(outcome), message);
        }
        connection.ping().await.unwrap();
        let mut seen = Vec::new();
        let on_news = |news| {
            if let CallEvent::Event(Event::Progress { progress, .. }) = news {
                seen.push(progress);
            }
        };
        let outcome = timeout(LONG, connection.call(tool("tell", json!({})), on_news)).await;
        assert_eq!(text(outcome.unwrap()), "told");
        assert_eq!(seen, [1.0, 2.0, 3.0]);
        connection.close().await;
    }
}

#[tokio::test]
async fn calls_at_the_same_time_get_their_own_answers() {
    for era in ERAS {
        let connection = connect(era, &ToolWatch::default()).await;
        let mut calls = Vec::new();
        for number in 0..50 {
            let connection = connection.clone();
            calls.push(tokio::spawn(async move {
                let message = number.to_string();
                let outcome = call(&connection, tool("echo", json!({"message": message}))).await;
                assert_eq!(text(outcome), message);
            }));
        }
        for call in calls {
            call.await.unwrap();
        }
    }
}

#[tokio::test]
async fn questions_are_asked_and_answered_in_both_ways() {
    let connection = connect(Era::Handshake, &ToolWatch::default()).await;
    let request = tool("ask", json!({}));
    let outcome = call_answering(&connection, request, json!({"name": "Ada"})).await;
    assert_eq!(text(outcome), "hello \"Ada\"");

    let connection = connect(Era::Stateless, &ToolWatch::default()).await;
    let outcome = call(&connection, tool("ask", json!({}))).await;
    let Outcome::InputRequired { requests, request_state } = outcome else { panic!("{outcome:?}") };
    let response = json!({"action": "accept", "content": {"name": "Ada"}});
    let responses = Raw::from_value(&json!({requests[0].key.as_str(): response}));
    let mut repeated = tool("ask", json!({}));
    repeated.options.input_responses =
        Some(InputResponses { responses: Some(responses), request_state });
    assert_eq!(text(call(&connection, repeated).await), "hello \"Ada\"");
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server() {
    for era in ERAS {
        let watch = ToolWatch::default();
        let connection = connect(era, &watch).await;
        let mut calling = connection.start_call(tool("wait", json!({})));
        let step = timeout(LONG, calling.next()).await.unwrap();
        assert!(matches!(step, CallStep::Event(CallEvent::Event(_))), "{step:?}");
        timeout(LONG, watch.started.notified()).await.unwrap();
        drop(calling);
        timeout(LONG, watch.dropped.notified()).await.unwrap();
        assert_eq!(text(call(&connection, tool("echo", json!({"message": "x"}))).await), "x");
    }
}

#[tokio::test]
async fn changes_are_sent_to_every_subscriber() {
    let late = || Tool::new("late", "Comes later", |_: Value| async { "late" });
    for era in ERAS {
        let (address, registry) = serve(&ToolWatch::default()).await;
        let connection = open(HttpServer::new(target(address)), era).await.unwrap();
        let mut notices = connection.notifications();
        let mut listening = None;
        if era == Era::Stateless {
            let filter = SubscriptionFilter { tools: true, ..SubscriptionFilter::default() };
            let mut calling = connection.start_call(CallRequest::new(Operation::Listen(filter)));
            let step = timeout(LONG, calling.next()).await.unwrap();
            let CallStep::Done(Outcome::Complete(Payload::Listening(granted))) = step else {
                panic!("{step:?}")
            };
            assert!(granted.tools);
            listening = Some(calling);
        }
        // The stream of a session is opened after the handshake: the change is repeated until the notification arrives.
        let heard = async {
            loop {
                registry.remove_tool("late");
                registry.add_tool(late());
                let heard = timeout(std::time::Duration::from_millis(100), notices.recv()).await;
                if let Ok(notice) = heard {
                    return notice.unwrap();
                }
            }
        };
        let notice = timeout(LONG, heard).await.unwrap();
        assert_eq!(notice, ServerNotification::Changed(Change::List(ListKind::Tools)));
        drop(listening);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_without_its_address() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let rows = [
        (format!("http://{closed}/secret"), "`web` refuses connections"),
        ("http://no-such-host.invalid/secret".to_owned(), "`web` cannot be found or reached"),
    ];
    for (url, expected) in rows {
        for era in ERAS {
            let target = HttpAddress::new("web", &url).unwrap();
            let target = target.header("Authorization", "Bearer secret").unwrap();
            let fault = open(HttpServer::new(target), era).await.unwrap_err();
            assert_eq!(fault.kind, FaultKind::BackendUnavailable);
            assert_eq!(fault.detail, expected);
            assert!(!format!("{fault:?}").contains("secret"), "{fault:?}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_is_closed_ends_its_session() {
    let (address, _) = serve(&ToolWatch::default()).await;
    let one = open(HttpServer::new(target(address)), Era::Handshake).await.unwrap();
    let mut call = one.start_call(tool("wait", json!({})));
    one.close().await;
    let outcome = timeout(LONG, call.outcome(drop)).await.unwrap();
    assert_eq!(fault(outcome).detail, "the connection to `web` was closed");
}
