//! Tests of an endpoint whose server shuts down.

use std::time::Duration;

use creole::serve::http::{Drain, DrainStage, EndpointSettings, McpEndpoint};
use serde_json::json;

use crate::client::{ToolWatch, call, document, open, post, service, text};

#[tokio::test]
async fn a_server_that_leaves_opens_no_session_and_serves_those_that_are_open() {
    let mut settings = EndpointSettings::default();
    settings.drain = Drain::new();
    let drain = settings.drain.clone();
    let endpoint = McpEndpoint::new(service(&ToolWatch::default()), settings);
    let session = open(&endpoint).await;
    let leaving = drain.clone();
    tokio::spawn(async move { leaving.begin_after(Duration::from_secs(3600)).await });
    drain.wait_for(DrainStage::Leaving).await;
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let refused = endpoint.handle(post(&[], &hello)).await;
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    let reason = text(refused).await;
    assert!(reason.contains("shuts down"), "{reason}");
    assert_eq!(document(endpoint.handle(call(&session, 2, "echo")).await).await["id"], 2);
}
