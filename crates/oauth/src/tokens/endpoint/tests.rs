//! Responses of token endpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{DpopUse, Grant, TokenEndpoint, TokenType, Tokens};
use crate::crypto::dpop::DpopKey;
use crate::crypto::jose::SigningKey;
use crate::error::OAuthError;
use crate::http::exchange::{Reach, Response};
use crate::scopes::Scopes;
use crate::secret::SecretText;
use crate::testing::{Servers, response, run};
use crate::tokens::client::OAuthClient;
use crate::web_url::WebUrl;

const URL: &str = "https://id.example.com/token";

fn endpoint(dpop: bool) -> TokenEndpoint {
    TokenEndpoint {
        url: WebUrl::parse(URL).unwrap(),
        reach: Reach::Public,
        issuer: "https://id.example.com".into(),
        client: OAuthClient::with_metadata_document("c"),
        assertion: None,
        dpop: dpop.then(|| {
            let key = Arc::new(DpopKey::new(SigningKey::generate().unwrap()));
            DpopUse { key, is_required: false }
        }),
    }
}

fn request(servers: &Servers, dpop: bool) -> Result<Tokens, OAuthError> {
    let grant =
        Grant::refresh(&SecretText::new("r"), Some("https://mcp.example.com"), Scopes::parse("a"));
    run(endpoint(dpop).request(servers, grant))
}

fn answer(body: &'static str, dpop: bool) -> Result<Tokens, OAuthError> {
    request(&Servers::new(move |_| response(200, body)), dpop)
}

#[test]
fn a_response_is_read() {
    let tokens =
        answer(r#"{"access_token":"t","token_type":"bearer","expires_in":60,"scope":"b"}"#, false)
            .unwrap();
    assert_eq!((tokens.access_token.expose(), tokens.expires_at), ("t", 1_000_060));
    assert_eq!((tokens.scopes, tokens.refresh_token), (Scopes::parse("b"), None));
    let plain = answer(r#"{"access_token":"t","token_type":"Bearer"}"#, false).unwrap();
    assert_eq!((plain.expires_at, plain.scopes), (1_003_600, Scopes::parse("a")));
    assert!(!format!("{:?}", plain.access_token).contains('t'));
}

#[test]
fn unusable_tokens_are_refused() {
    for body in [
        r#"{"access_token":"t","token_type":"mac"}"#,
        r#"{"access_token":"t"}"#,
        r#"{"access_token":"t\nx","token_type":"Bearer"}"#,
        r#"{"access_token":"","token_type":"Bearer"}"#,
        r#"{"access_token":"t","token_type":"DPoP"}"#,
        r#"{"token_type":"Bearer"}"#,
        "<html>",
    ] {
        assert!(matches!(answer(body, false), Err(OAuthError::Document { .. })), "{body}");
    }
    let long = format!(r#"{{"access_token":"{}","token_type":"Bearer"}}"#, "x".repeat(17 * 1024));
    assert!(request(&Servers::new(move |_| response(200, long.clone())), false).is_err());
}

#[test]
fn a_refusal_names_the_error() {
    let servers =
        Servers::new(|_| response(400, r#"{"error":"invalid_grant","error_description":"gone"}"#));
    let error = request(&servers, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "https://id.example.com refused the refresh token: invalid_grant (gone)"
    );
    let servers = Servers::new(|_| response(502, "bad gateway"));
    assert_eq!(
        request(&servers, false).unwrap_err().to_string(),
        "https://id.example.com refused the refresh token: status 502"
    );
}

#[test]
fn a_demanded_nonce_is_used_in_a_new_proof_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let servers = Servers::new(move |_| match seen.fetch_add(1, Ordering::Relaxed) {
        0 => Response {
            dpop_nonce: Some("n".into()),
            ..response(400, r#"{"error":"use_dpop_nonce"}"#)
        },
        _ => response(200, r#"{"access_token":"t","token_type":"DPoP"}"#),
    });
    assert_eq!(request(&servers, true).unwrap().token_type, TokenType::Dpop);
    let requests = servers.requests.lock().unwrap();
    let proofs: Vec<_> =
        requests.iter().flat_map(|it| it.headers.iter().filter(|it| it.0 == "dpop")).collect();
    assert_eq!(proofs.len(), 2);
    assert_ne!(proofs[0].1, proofs[1].1);
    drop(requests);

    let always = Servers::new(|_| Response {
        dpop_nonce: Some("n".into()),
        ..response(400, r#"{"error":"use_dpop_nonce"}"#)
    });
    assert!(request(&always, true).is_err());
    assert_eq!(always.urls().len(), 2);
}
