//! Rules about the scopes, roles and claims of access tokens.

use std::collections::BTreeSet;

use creole_acceptance::http::required_headers::fields;
use creole_acceptance::http::{Request, Response};
use serde_json::{Value, json};

use crate::issuer::TestIssuer;
use crate::{TokenServer, table, with_token};

const SCOPES: &str = r#"
[auth.oauth]
required_scopes = ["mcp"]

[policy]

[[policy.rules]]
name = "writers"
effect = "allow"
tools = ["echo"]
scopes = ["files:read", "files:write"]
"#;

const CLAIMS: &str = r#"
[policy]

[[policy.rules]]
name = "developers of tools"
effect = "allow"
roles = ["dev"]
issuers = ["corp"]
clients = ["editor"]
tools = ["echo"]
when = 'principal.claims.department == "tools" && principal.name == "alice"'
"#;

fn server(issuer: &TestIssuer, rules: &str) -> TokenServer {
    TokenServer::start(&format!("{}{rules}", table("corp", issuer, "roles_claim = \"roles\"")))
}

/// A request without a session.
fn stateless(protected: &TokenServer, token: &str, method: &str, mut params: Value) -> Response {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::post(message.to_string()).with_all(fields(&message));
    protected.send(&request.with("Authorization", &format!("Bearer {token}")))
}

/// A call in a new session of 2025-11-25.
fn in_session(protected: &TokenServer, token: &str, method: &str, params: Value) -> Response {
    let greeting = protected.send(&with_token(token));
    let session = greeting.head.field("mcp-session-id").expect("a session").to_owned();
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = Request::post(message.to_string()).with("Mcp-Session-Id", &session);
    protected.send(&request.with("Authorization", &format!("Bearer {token}")))
}

fn echo() -> Value {
    json!({"name": "echo", "arguments": {"message": "hi"}})
}

/// The scopes that a challenge asks for.
fn challenged_scopes(response: &Response) -> BTreeSet<String> {
    let challenge = response.head.field("www-authenticate").unwrap_or_default();
    let (_, after) = challenge.split_once("scope=\"").unwrap_or_else(|| panic!("{challenge}"));
    let scopes = after.split_once('"').expect("the end of the scopes").0;
    scopes.split(' ').map(str::to_owned).collect()
}

#[test]
fn a_rule_with_two_scopes_asks_for_both_at_once() {
    let issuer = TestIssuer::start();
    let protected = server(&issuer, SCOPES);
    let narrow = issuer.token(&protected.url(), json!({}));
    let expected: BTreeSet<String> = ["mcp", "files:read", "files:write"].map(str::to_owned).into();
    for send in [stateless, in_session] {
        let refused = send(&protected, &narrow, "tools/call", echo());
        assert_eq!(refused.head.status, 403, "{}", refused.text());
        let challenge = refused.head.field("www-authenticate").unwrap();
        assert!(challenge.contains("error=\"insufficient_scope\""), "{challenge}");
        assert_eq!(challenged_scopes(&refused), expected);
        // The tool is listed, so that the client can ask for the scopes.
        let list = send(&protected, &narrow, "tools/list", json!({})).message();
        assert_eq!(list["result"]["tools"][0]["name"], "echo", "{list}");
    }
    let scope = json!({"scope": "mcp files:read files:write"});
    let wide = issuer.token(&protected.url(), scope);
    for send in [stateless, in_session] {
        let response = send(&protected, &wide, "tools/call", echo());
        assert_eq!(response.message()["result"]["content"][0]["text"], "hi");
    }
}

#[test]
fn rules_see_roles_and_the_claims_that_they_name() {
    let issuer = TestIssuer::start();
    let protected = server(&issuer, CLAIMS);
    let token = |claims: Value| issuer.token(&protected.url(), claims);
    let right = token(json!({"roles": ["dev"], "department": "tools"}));
    let wrong = [
        json!({"roles": ["ops"], "department": "tools"}),
        json!({"roles": ["dev"], "department": "sales"}),
        json!({"roles": ["dev"]}),
        json!({"roles": ["dev"], "department": "tools", "sub": "bob"}),
        json!({"roles": ["dev"], "department": "tools", "client_id": "phone"}),
    ];
    for send in [stateless, in_session] {
        let response = send(&protected, &right, "tools/call", echo());
        assert_eq!(response.message()["result"]["content"][0]["text"], "hi");
        for claims in &wrong {
            let token = token(claims.clone());
            let list = send(&protected, &token, "tools/list", json!({})).message();
            assert_eq!(list["result"]["tools"], json!([]), "{claims}");
            let refused = send(&protected, &token, "tools/call", echo()).message();
            assert_eq!(refused["error"]["message"], "Unknown tool: echo", "{claims}: {refused}");
        }
    }
}
