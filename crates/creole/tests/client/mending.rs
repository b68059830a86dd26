//! Tests of calls that a server rejected before it ran them, and that the client retries once.

use std::sync::atomic::{AtomicUsize, Ordering};

use creole::client::{Address, Client, HttpAddress};
use creole::proto::fault::FaultKind;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::scripted::{
    ResponseScript, SeenRequest, answer, document, opening, said, serve, status,
};
use crate::support::LONG;

async fn client(script: ResponseScript) -> (Client, impl Fn(&str) -> usize) {
    let (address, seen) = serve(script).await;
    let target = HttpAddress::new("web", &format!("http://{address}/mcp")).unwrap();
    let client = timeout(LONG, Client::connect(Address::Http(target))).await.unwrap().unwrap();
    let count =
        move |method: &str| seen.lock().unwrap().iter().filter(|one| one.is(method)).count();
    (client, count)
}

fn legacy(request: &SeenRequest) -> Option<String> {
    match request.is("server/discover") {
        true => Some(status("404 Not Found", "")),
        false => opening(request),
    }
}

#[tokio::test]
async fn a_session_that_was_forgotten_is_opened_once_more() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let script: ResponseScript = |request| {
        legacy(request).unwrap_or_else(|| match CALLS.fetch_add(1, Ordering::SeqCst) {
            0 => status("404 Not Found", ""),
            _ => document(&said(request, "hi"), ""),
        })
    };
    let (client, count) = client(script).await;
    let result = timeout(LONG, client.call_tool("t", &json!({}))).await.unwrap().unwrap();
    assert!(result.text().contains("hi"), "{result:?}");
    assert_eq!((count("initialize"), count("tools/call")), (2, 2));
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_asked_twice_and_no_more() {
    let script: ResponseScript =
        |request| legacy(request).unwrap_or_else(|| status("404 Not Found", ""));
    let (client, count) = client(script).await;
    let fault = timeout(LONG, client.call_tool("t", &json!({}))).await.unwrap().unwrap_err();
    assert_eq!(fault.detail, "`web` no longer has the session");
    assert_eq!(count("tools/call"), 2);
}

#[tokio::test]
async fn headers_that_a_server_misses_are_learnt_from_its_list() {
    let script: ResponseScript = |request| {
        opening(request).unwrap_or_else(|| {
            let schema = json!({"type": "object",
                "properties": {"place": {"type": "string", "x-mcp-header": "Place"}}});
            let tools = json!([{"name": "t", "inputSchema": schema}]);
            match (request.is("tools/list"), request.header("mcp-param-place")) {
                (true, _) => document(
                    &answer(
                        request,
                        json!({"resultType": "complete", "tools": tools,
                        "ttlMs": 0, "cacheScope": "private"}),
                    ),
                    "",
                ),
                (false, Some(location)) => document(&said(request, &location), ""),
                (false, None) => mismatch(request),
            }
        })
    };
    let (client, count) = client(script).await;
    let value = json!({"place": "here"});
    let result = timeout(LONG, client.call_tool("t", &value)).await.unwrap().unwrap();
    assert!(result.text().contains("here"), "{result:?}");
    assert_eq!((count("tools/list"), count("tools/call")), (1, 2));
    let fault = timeout(LONG, client.call_tool("other", &json!({}))).await.unwrap().unwrap_err();
    assert_eq!((fault.kind, count("tools/call")), (FaultKind::HeaderMismatch, 4));
}

fn mismatch(request: &SeenRequest) -> String {
    let error = json!({"code": -32020, "message": "header mismatch"});
    let body: Value = json!({"jsonrpc": "2.0", "id": request.id(), "error": error});
    document(&body, "").replacen("200 OK", "400 Bad Request", 1)
}
