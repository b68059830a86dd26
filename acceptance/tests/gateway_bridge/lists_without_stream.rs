//! Tests of the lists of upstreams that announce change notifications but have no stream to deliver them.

use std::fs;
use std::time::Duration;

use creole_acceptance::gateway::{
    HandshakeClient, PendingRequest, ScriptedHttpServer, ScriptedReplies,
};
use creole_acceptance::http::ListeningServer;
use creole_test_wait::blocking::delay;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Longer than the time for which a list counts as fresh.
const AGE: Duration = Duration::from_millis(1200);

fn before(site: &ScriptedHttpServer) -> (ListeningServer, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let upstream = format!("[upstreams.site]\nurl = \"{}\"\nprefix = \"\"\n", site.url());
    fs::write(&file, format!("[server]\nname = \"gateway\"\n\n{upstream}")).unwrap();
    (ListeningServer::start(&[&file.display().to_string()]).unwrap(), folder)
}

/// A server that announces change notifications. The test writes its lists.
fn with_list_changes() -> ScriptedReplies {
    let capabilities = json!({"tools": {"listChanged": true}});
    ScriptedReplies::new("2025-06-18", capabilities, &[]).leaving("tools/list")
}

fn tools(name: &str) -> Value {
    json!({"tools": [{"name": name, "inputSchema": {"type": "object"}}]})
}

fn client(gateway: &ListeningServer) -> HandshakeClient {
    HandshakeClient::open(gateway.address(), "2025-06-18", json!({}), None)
}

#[test]
fn lists_of_a_server_without_a_stream_are_fetched_again() {
    let site = ScriptedHttpServer::new(with_list_changes());
    let (gateway, _folder) = before(&site);
    site.hears("tools/list").result(tools("first"));
    let client = client(&gateway);
    delay(AGE);
    let mut listing = client.begin(&json!(1), "tools/list", &json!({}));
    site.hears("tools/list").result(tools("second"));
    let listed = listing.answer();
    assert_eq!(listed["result"]["tools"][0]["name"], "second", "{listed}");
}

/// Responds to every list request with this list until a stream is requested, which it opens.
#[track_caller]
fn wait_for_request(site: &ScriptedHttpServer, name: &str) -> PendingRequest {
    loop {
        let mut request = site.next();
        match &*request.method {
            "GET" => {
                request.stream();
                return request;
            }
            _ => request.result(tools(name)),
        }
    }
}

#[test]
fn changes_during_a_lost_stream_are_detected() {
    let site = ScriptedHttpServer::with_streams(with_list_changes());
    let (gateway, _folder) = before(&site);
    let mut stream = wait_for_request(&site, "first");
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    stream.event(&changed);
    // The list is fetched for the notification and, because the stream opened late, for notifications that may have
    // been missed.
    while let Some(mut request) = site.within(AGE * 2) {
        assert_eq!(request.message["method"], "tools/list", "{}", request.message);
        request.result(tools("first"));
    }
    let client = client(&gateway);
    let mut pending = client.listen();
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "first", "{listed}");
    assert!(
        site.within(AGE).is_none(),
        "a list of an upstream with change notifications is not polled"
    );
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "first", "{listed}");
    drop(stream);
    let _stream = wait_for_request(&site, "first");
    site.hears("tools/list").result(tools("second"));
    let news = pending.message();
    assert_eq!(news["method"], "notifications/tools/list_changed", "{news}");
    let listed = client.request("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"][0]["name"], "second", "{listed}");
}
