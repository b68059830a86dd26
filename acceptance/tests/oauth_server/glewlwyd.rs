//! Tokens of Glewlwyd, whose metadata is only at the address that OpenID Connect appends to the issuer.

use creole_acceptance::gateway::StatelessClient;
use creole_acceptance::http::Request;
use creole_acceptance::peers::glewlwyd::Glewlwyd;
use creole_acceptance::peers::if_installed;
use creole_acceptance::process_under_test::told;
use serde_json::json;

use crate::TokenServer;

/// The resource that tokens are for. The server is also reached under another address.
const RESOURCE: &str = "http://127.0.0.1:9/mcp";

#[test]
fn the_metadata_of_an_issuer_is_looked_for_in_three_places() {
    let started = Glewlwyd::start(&[RESOURCE, "http://127.0.0.1:9/other"]);
    let Some(glewlwyd) = if_installed("Glewlwyd", started) else { return };
    let server = TokenServer::with(&glewlwyd.issuer(), &format!("audiences = [\"{RESOURCE}\"]\n"));
    assert_eq!(glewlwyd.requests(), Vec::<String>::new(), "nothing is asked before a token comes");
    let client = StatelessClient::new(server.address()).with_key(&glewlwyd.access_token(RESOURCE));
    assert!(told(&client.call("test_simple_text", json!({}))).is_ok());
    let expected = [
        "GET /.well-known/oauth-authorization-server/api/oidc",
        "GET /.well-known/openid-configuration/api/oidc",
        "GET /api/oidc/.well-known/openid-configuration",
        "GET /api/oidc/jwks",
    ];
    assert_eq!(glewlwyd.requests(), expected);
    // Another token is verified with the same keys.
    let client = client.with_key(&glewlwyd.access_token(RESOURCE));
    assert!(told(&client.call("test_simple_text", json!({}))).is_ok());
    assert_eq!(glewlwyd.requests().len(), expected.len());
}

#[test]
fn a_token_of_glewlwyd_for_another_resource_is_refused() {
    let started = Glewlwyd::start(&[RESOURCE, "http://127.0.0.1:9/other"]);
    let Some(glewlwyd) = if_installed("Glewlwyd", started) else { return };
    let server = TokenServer::with(&glewlwyd.issuer(), &format!("audiences = [\"{RESOURCE}\"]\n"));
    let token = glewlwyd.access_token("http://127.0.0.1:9/other");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let request = Request::post(ping.to_string()).with("Authorization", &format!("Bearer {token}"));
    let refused = request.send(server.address()).unwrap();
    assert_eq!(refused.head.status, 401, "{}", refused.text());
    let challenge = refused.head.field("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
}
