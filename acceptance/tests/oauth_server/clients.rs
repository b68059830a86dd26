//! Clients of other authors log in to Creole by their own OAuth code, and call a tool.

use creole_acceptance::http::Request;
use creole_acceptance::peers::{self, Mode, Peer, Steps, is_installed};
use serde_json::json;

use crate::people::Person;
use crate::{TokenServer, provider};

/// Logs in with a client in each of these modes, and calls a tool.
#[track_caller]
fn logs_in_and_calls(peer: Peer, modes: &[Mode]) {
    if !is_installed(peer) {
        return;
    }
    let Some(provider) = provider(&["--forms"]) else { return };
    let server = TokenServer::start(&provider.issuer());
    let bob = Person::new("bob");
    let steps = Steps::new().call("test_simple_text", json!({}));
    for (number, mode) in modes.iter().enumerate() {
        let told = peers::run_logged_in(peer, *mode, &steps, &server.url(), &bob.browser());
        let told = told.unwrap_or_else(|error| panic!("{peer} {mode:?}: {error}"));
        assert_eq!(told["errors"], json!([]), "{peer} {mode:?}: {told}");
        let text = &told["call"]["content"][0]["text"];
        assert!(text.as_str().is_some_and(|text| !text.is_empty()), "{peer} {mode:?}: {told}");
        // Each login is a new one, for this server, with the scope that the challenge names.
        assert_eq!(provider.token_requests("authorization_code", 200), number + 1, "{peer}");
    }
    let logins = provider.requests().into_iter().filter(|it| it["path"] == "/auth");
    for login in logins {
        assert_eq!(login["resource"], json!(server.url()), "{login}");
        let scopes = login["scope"].as_str().unwrap_or_default();
        assert!(scopes.split(' ').any(|scope| scope == "mcp"), "{login}");
    }
}

#[test]
fn version_1_of_the_typescript_sdk_logs_in_and_calls_a_tool() {
    logs_in_and_calls(Peer::TypeScriptV1, &[Mode::Legacy]);
}

#[test]
fn version_2_of_the_typescript_sdk_logs_in_and_calls_a_tool() {
    logs_in_and_calls(Peer::TypeScriptV2, &[Mode::Legacy, Mode::Modern]);
}

#[test]
fn version_1_of_the_python_sdk_logs_in_and_calls_a_tool() {
    logs_in_and_calls(Peer::PythonV1, &[Mode::Legacy]);
}

#[test]
fn version_2_of_the_python_sdk_logs_in_and_calls_a_tool() {
    logs_in_and_calls(Peer::PythonV2, &[Mode::Legacy, Mode::Modern]);
}

#[test]
fn the_inspector_logs_in_and_calls_a_tool() {
    logs_in_and_calls(Peer::Inspector, &[Mode::Legacy, Mode::Modern]);
}

#[test]
fn creole_logs_in_to_creole_with_a_token_that_a_thief_cannot_use() {
    let Some(provider) = provider(&["--forms"]) else { return };
    let (server, alice) = (TokenServer::start(&provider.issuer()), Person::new("alice"));
    let token = alice.log_in(&server.url());
    let called = alice.run(&["call", &server.url(), "test_simple_text"]).succeeded();
    assert!(!called.stdout.trim().is_empty(), "{called:?}");
    // The token is bound to a key of the client.
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    for scheme in ["Bearer", "DPoP"] {
        let request = Request::post(ping.clone());
        let request = request.with("Authorization", &format!("{scheme} {token}"));
        let refused = request.send(server.address()).unwrap();
        assert_eq!(refused.head.status, 401, "{scheme}: {}", refused.text());
    }
}
