//! Tests of the memory budget of responses: a call whose response does not fit fails at once.

use creole::client::{HttpAddress, LineServer};
use creole::internal::budget::Budget;
use creole::internal::client::{Connection, HttpServer};
use creole::proto::client::ClientLimits;
use creole::proto::revision::Era;
use creole::serve::http::{
    Drain, EndpointSettings, HttpLimits, Listener, McpEndpoint, Method, OriginGuard, Route, Router,
};
use creole::stream::memory_pair;
use creole::{Context, Server, Tool};
use serde_json::{Value, json};

use crate::support::{call, fault, open, open_within, text, tool};

/// Enough for one response of the tool `much`, and not for one of `more`.
const BUDGET: usize = 2 * 1024 * 1024;

/// A server whose responses have the requested length, as a document or in a stream.
fn server() -> Server {
    let long = Tool::new("long", "Says much", |arguments: Value| async move {
        "x".repeat(arguments["length"].as_u64().unwrap_or(0) as usize)
    });
    let told = Tool::new(
        "told",
        "Tells, and says much",
        |arguments: Value, context: Context| async move {
            context.progress(1.0, None, None).await;
            "x".repeat(arguments["length"].as_u64().unwrap_or(0) as usize)
        },
    );
    Server::new("test").tool(long).tool(told)
}

async fn inside(budget: &Budget) -> Connection {
    let (near, far) = memory_pair();
    let service = server().start();
    tokio::spawn(async move {
        let (source, sink) = far.split();
        service.serve(source, sink).await
    });
    let (source, sink) = near.split();
    let server = LineServer::new("inside", source, sink).budget(budget.clone());
    open(server, Era::Stateless).await.unwrap()
}

async fn web(budget: &Budget, era: Era) -> Connection {
    let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HttpLimits::default()).await.unwrap();
    let address = listener.address().unwrap();
    let endpoint = McpEndpoint::new(server().start(), EndpointSettings::default());
    let methods = [Method::POST, Method::GET, Method::DELETE];
    let router = Router::new(OriginGuard::loopback(), Drain::new());
    tokio::spawn(listener.serve(router.route(Route::new("/mcp", &methods, endpoint))));
    let target = HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap();
    open_within(HttpServer::new(target.budget(budget.clone())), era, ClientLimits::default())
        .await
        .unwrap()
}

#[tokio::test]
async fn an_answer_that_does_not_fit_fails_its_call_at_once_and_the_next_one_is_answered() {
    let budget = Budget::new(BUDGET);
    let connections = [
        inside(&budget).await,
        web(&budget, Era::Handshake).await,
        web(&budget, Era::Stateless).await,
    ];
    for connection in connections {
        for name in ["long", "told"] {
            let answer = |length: usize| call(&connection, tool(name, json!({"length": length})));
            assert_eq!(text(answer(300_000).await).len(), 300_000);
            let fault = fault(answer(5_000_000).await);
            // 5 MB are below the message limit: only the memory budget is exceeded.
            assert!(fault.detail.contains("the memory budget"), "{}", fault.detail);
            assert!(fault.detail.ends_with("try again later"), "{}", fault.detail);
            assert_eq!(text(answer(300_000).await).len(), 300_000);
        }
        connection.close().await;
    }
    assert_eq!(budget.used(), 0, "the whole budget is free again");
}
