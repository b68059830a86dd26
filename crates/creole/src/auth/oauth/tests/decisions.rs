//! What is cached, what is throttled, and what a principal has of its token.

use std::time::Duration;

use serde_json::json;

use super::{
    ISSUER, ResourceSettings, TestIssuer, TokenCall, advance, call, resource_of, resource_settings,
    shown, verifier, verifier_of, verify,
};
use crate::principal::TokenMethod;

#[tokio::test(start_paused = true)]
async fn each_reason_is_told_apart_in_the_log_only() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let now = issuer.clock.now();
    let key = issuer.key();
    let header = |header| key.sign(&header, &issuer.claims(json!({}))).unwrap();
    let cases = [
        (issuer.token(json!({ "aud": "https://mcp.example.com/" })), "invalid audience"),
        (issuer.token(json!({ "iss": "https://id.example.com/" })), "invalid issuer"),
        (issuer.token(json!({ "exp": now - 61 })), "invalid expired"),
        (issuer.token(json!({ "exp": now - 59 })), "granted oauth:corp:alice"),
        (issuer.token(json!({ "nbf": now + 61 })), "invalid claims"),
        (issuer.token(json!({ "cnf": { "x": "y" } })), "invalid binding"),
        (header(json!({ "typ": "JWT", "kid": key.id() })), "invalid typ"),
        (format!("{}AA", issuer.token(json!({}))), "invalid signature"),
        ("a.b.c".to_owned(), "invalid malformed"),
        ("a.b.c.d.e".to_owned(), "invalid malformed"),
        ("opaque".to_owned(), "invalid issuer"),
        ("x".repeat(8_193), "invalid malformed"),
    ];
    for (token, expected) in cases {
        assert_eq!(verify(&verifier, &token).await, expected);
    }
    assert_eq!(issuer.count("/keys"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_one_path_is_refused_at_another() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({ "aud": "https://mcp.example.com/house" }));
    let house = TokenCall { url: "https://mcp.example.com/house", ..call(&token) };
    for _ in 0..2 {
        assert_eq!(verify(&verifier, &token).await, "invalid audience");
        assert_eq!(shown(&verifier.verify(house).await), "granted oauth:corp:alice");
    }
    let listed = crate::auth::oauth::IssuerSettings {
        audiences: Some(vec!["api://creole".to_owned()]),
        ..issuer.settings()
    };
    let verifier = verifier_of(&[(&issuer, listed)]);
    assert_eq!(verify(&verifier, &issuer.token(json!({}))).await, "invalid audience");
    let token = issuer.token(json!({ "aud": ["x", "api://creole"] }));
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn a_path_may_take_the_tokens_of_some_issuers() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({}));
    let only = |label: &str| {
        let issuers = vec![(label.into(), ISSUER.into())];
        resource_of(ResourceSettings { issuers, ..resource_settings() })
    };
    let elsewhere =
        TokenCall { url: "https://x.example", resource: &only("other"), ..call(&token) };
    assert_eq!(shown(&verifier.verify(elsewhere).await), "invalid issuer");
    let here = TokenCall { resource: &only("corp"), ..call(&token) };
    assert_eq!(shown(&verifier.verify(here).await), "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn a_valid_token_is_cached_for_a_minute_and_never_beyond_its_end() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({}));
    verify(&verifier, &token).await;
    advance(59).await;
    assert!(verifier.try_verify(call(&token)).is_some());
    advance(1).await;
    assert!(verifier.try_verify(call(&token)).is_none());
    let short = issuer.token(json!({ "exp": issuer.clock.now() - 50 }));
    assert_eq!(verify(&verifier, &short).await, "granted oauth:corp:alice");
    advance(9).await;
    assert!(verifier.try_verify(call(&short)).is_some());
    advance(2).await;
    assert_eq!(verify(&verifier, &short).await, "invalid expired");
}

#[tokio::test(start_paused = true)]
async fn a_network_with_many_wrong_tokens_waits_and_cached_callers_do_not() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({}));
    verify(&verifier, &token).await;
    for number in 0..100 {
        let wrong = format!("wrong-{number}");
        for _ in 0..3 {
            assert_eq!(
                verify(&verifier, &wrong).await,
                "invalid issuer",
                "repeated ones count once"
            );
        }
    }
    assert_eq!(verify(&verifier, "wrong-100").await, "throttled 60");
    assert_eq!(verify(&verifier, "wrong-99").await, "invalid issuer", "a cached refusal");
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
    let other = issuer.token(json!({ "sub": "bob" }));
    assert_eq!(verify(&verifier, &other).await, "throttled 60");
    let elsewhere = TokenCall { peer: Some([198, 51, 100, 1].into()), ..call(&other) };
    assert_eq!(shown(&verifier.verify(elsewhere).await), "granted oauth:corp:bob");
    advance(60).await;
    assert_eq!(verify(&verifier, "wrong-100").await, "invalid issuer");
}

#[tokio::test(start_paused = true)]
async fn a_principal_has_what_its_token_says() {
    let issuer = TestIssuer::new(ISSUER);
    let mut settings = issuer.settings();
    settings.rules.roles_claim = creole_oauth::resource::claim_path::ClaimPath::new("groups");
    let verifier = verifier_of(&[(&issuer, settings)])
        .keep_claims(vec!["department".to_owned(), "absent".to_owned()]);
    let changes = json!({
        "scope": "mcp files:write", "groups": ["ops"], "department": { "x": 1 }, "secret": "s",
    });
    let token = issuer.token(changes);
    let decision = verifier.verify(call(&token)).await;
    let super::TokenDecision::Granted(principal) = decision else { panic!("{decision:?}") };
    let identity = principal.token().unwrap();
    assert_eq!((&*identity.issuer, &*identity.label), (ISSUER, "corp"));
    assert_eq!(identity.client.as_deref(), Some("editor"));
    assert_eq!((identity.method, identity.is_dpop), (TokenMethod::Jwt, false));
    assert_eq!(identity.claims, *json!({ "department": { "x": 1 } }).as_object().unwrap());
    let end = std::time::UNIX_EPOCH + Duration::from_secs(issuer.clock.now() + 3_600);
    assert_eq!(identity.expires_at, end);
    assert!(principal.has_role("ops") && principal.has_role("writer"));
    assert!(principal.has_scope("files:read") && !principal.has_scope("admin"));
    assert_eq!(identity.fingerprint, crate::secrets::digest(token.as_bytes())[..4]);
    let large = issuer.token(json!({ "scope": "a b", "department": "x".repeat(5_000) }));
    assert_eq!(verify(&verifier, &large).await, "granted oauth:corp:alice");
    let huge = issuer.token(json!({ "scope": "a b", "department": "x".repeat(9_000) }));
    let wide = resource_of(ResourceSettings { max_token: 24_576, ..resource_settings() });
    let decision = verifier.verify(TokenCall { resource: &wide, ..call(&huge) }).await;
    assert_eq!(shown(&decision), "invalid claims");
}
