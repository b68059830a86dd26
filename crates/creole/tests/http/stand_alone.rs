//! Tests of requests of the stateless era.

use std::sync::atomic::Ordering;

use http::Method;
use serde_json::json;

use crate::client::{document, endpoint, modern, modern_call, part, post, request, text};

#[tokio::test]
async fn a_quick_call_is_answered_with_one_document() {
    let (endpoint, _) = endpoint();
    let call = modern("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}));
    let response = endpoint.handle(call).await;
    assert_eq!(response.status(), 200);
    assert!(!response.headers().contains_key("mcp-session-id"));
    let result = document(response).await;
    assert_eq!(result["result"]["content"][0]["text"], "hi");
}

#[tokio::test]
async fn a_call_with_notifications_gets_a_stream() {
    let (endpoint, watch) = endpoint();
    watch.go_on.notify_one();
    let response = endpoint.handle(modern_call("tell")).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let text = text(response).await;
    let events: Vec<_> = text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.len(), 3, "{text}");
    assert!(events[0].contains(r#""progress":1"#) && events[1].contains(r#""progress":2"#));
    assert!(events[2].contains("told") && !text.contains("id: "), "{text}");
}

#[tokio::test]
async fn a_client_that_accepts_no_streams_waits_for_the_response() {
    let (endpoint, watch) = endpoint();
    watch.go_on.notify_one();
    let (mut parts, body) = modern_call("tell").into_parts();
    parts.headers.insert("accept", "application/json".parse().unwrap());
    let response = document(endpoint.handle(http::Request::from_parts(parts, body)).await).await;
    assert_eq!(response["result"]["content"][0]["text"], "told");
}

#[tokio::test]
async fn a_disconnect_before_the_response_cancels_the_call() {
    let (endpoint, watch) = endpoint();
    let asked = endpoint.clone();
    let waiting = tokio::spawn(async move { asked.handle(modern_call("wait")).await });
    watch.started.notified().await;
    waiting.abort();
    watch.dropped.notified().await;
    assert_eq!(watch.finished.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_disconnect_during_a_stream_cancels_the_call() {
    let (endpoint, watch) = endpoint();
    let mut response = endpoint.handle(modern_call("tell")).await;
    assert!(part(response.body_mut()).await.unwrap().contains("progress"));
    drop(response);
    watch.go_on.notify_one();
    let (endpoint, _) = (endpoint, watch);
    let call = modern("tools/call", json!({"name": "echo", "arguments": {"message": "hi"}}));
    assert_eq!(endpoint.handle(call).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_becomes_a_stream_that_is_kept_alive() {
    let (endpoint, watch) = endpoint();
    let mut response = endpoint.handle(modern_call("wait")).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert_eq!(part(response.body_mut()).await.unwrap(), ":\n\n");
    watch.go_on.notify_one();
    assert!(part(response.body_mut()).await.unwrap().contains("went on"));
    assert_eq!(part(response.body_mut()).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_timed_out_call_gets_an_error_and_is_stopped() {
    let (endpoint, watch) = endpoint();
    let text = text(endpoint.handle(modern_call("wait")).await).await;
    assert!(text.contains("timed out") && text.contains("-32603"), "{text}");
    watch.dropped.notified().await;
}

#[tokio::test]
async fn a_subscription_delivers_changes_and_ends_gracefully() {
    let watch = crate::client::ToolWatch::default();
    let service = crate::client::service(&watch);
    let settings = creole::serve::http::EndpointSettings::default();
    let endpoint = creole::serve::http::McpEndpoint::new(service.clone(), settings);
    let listen =
        modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut response = endpoint.handle(listen).await;
    let opened = part(response.body_mut()).await.unwrap();
    assert!(opened.contains("notifications/subscriptions/acknowledged"), "{opened}");
    service.registry().remove_tool("wait");
    let changed = part(response.body_mut()).await.unwrap();
    assert!(changed.contains("notifications/tools/list_changed"), "{changed}");
    endpoint.drain();
    let ended = part(response.body_mut()).await.unwrap();
    assert!(ended.contains(r#""resultType":"complete""#), "{ended}");
    assert_eq!(part(response.body_mut()).await, None);
}

#[tokio::test]
async fn faults_have_the_statuses_of_the_specification() {
    let (endpoint, _) = endpoint();
    let unknown = endpoint.handle(modern("unknown/method", json!({}))).await;
    assert_eq!(unknown.status(), 404);
    assert_eq!(document(unknown).await["error"]["code"], -32601);
    let tool = endpoint.handle(modern("tools/call", json!({"name": "none"}))).await;
    assert_eq!(tool.status(), 200);
    let header = json!({"jsonrpc": "2.0", "id": "x", "method": "tools/list", "params": {}});
    let bare = endpoint.handle(post(&[("mcp-protocol-version", "2026-07-28")], &header)).await;
    assert_eq!(bare.status(), 400);
    let bare = document(bare).await;
    assert_eq!((&bare["error"]["code"], &bare["id"]), (&json!(-32602), &json!("x")));
}

/// Method, headers, body and the status they get.
type RequestCase<'a> = (Method, &'a [(&'a str, &'a str)], &'a str, u16);

#[tokio::test]
async fn invalid_messages_are_refused_by_status() {
    let (endpoint, _) = endpoint();
    let json = ("content-type", "application/json");
    let rows: [RequestCase<'_>; 7] = [
        (Method::POST, &[], "{}", 415),
        (Method::POST, &[("content-type", "text/plain")], "{}", 415),
        (Method::POST, &[json, ("accept", "text/html")], "{}", 406),
        (Method::POST, &[json], "{", 400),
        (Method::PUT, &[json], "{}", 405),
        (Method::GET, &[("accept", "text/event-stream")], "", 400),
        (Method::DELETE, &[("mcp-session-id", "guessed")], "", 404),
    ];
    for (method, headers, body, status) in rows {
        let response = endpoint.handle(request(method.clone(), headers, body)).await;
        assert_eq!(response.status(), status, "{method} {headers:?} {body}");
    }
    let long = "x".repeat(1024 * 1024 + 1);
    let response = endpoint.handle(request(Method::POST, &[json], &long)).await;
    assert_eq!(response.status(), 413);
    assert_eq!(response.headers()["connection"], "close");
}

#[tokio::test]
async fn a_body_that_says_it_is_encoded_is_refused_and_not_executed() {
    let (endpoint, watch) = endpoint();
    let call = || modern("tools/call", json!({"name": "wait", "arguments": {}}));
    for coding in ["gzip", "br", "identity, gzip", "gzip, identity", "x"] {
        let mut request = call();
        request.headers_mut().insert("content-encoding", coding.parse().unwrap());
        let response = endpoint.handle(request).await;
        assert_eq!(response.status(), 415, "{coding}");
        assert_eq!(response.headers()["accept-encoding"], "identity");
    }
    let mut twice = call();
    twice.headers_mut().append("content-encoding", "identity".parse().unwrap());
    twice.headers_mut().append("content-encoding", "gzip".parse().unwrap());
    assert_eq!(endpoint.handle(twice).await.status(), 415);
    assert_eq!(watch.finished.load(Ordering::SeqCst), 0);
    for coding in ["identity", "Identity", " identity , identity", ""] {
        let mut request = modern("tools/call", json!({"name": "echo", "arguments": {}}));
        request.headers_mut().insert("content-encoding", coding.parse().unwrap());
        assert_eq!(endpoint.handle(request).await.status(), 200, "{coding}");
    }
}
