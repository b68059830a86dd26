//! Opaque tokens, about which the issuer is asked.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::{
    Behaviour, ISSUER, TestIssuer, TokenCall, advance, call, settle, shown, verifier_of, verify,
};
use crate::principal::TokenMethod;

#[tokio::test(start_paused = true)]
async fn an_answer_is_used_for_half_a_minute() {
    let issuer = TestIssuer::new(ISSUER);
    issuer.add_opaque("good", json!({}));
    let verifier = verifier_of(&[(&issuer, issuer.introspecting(false))]);
    for _ in 0..3 {
        let decision = verifier.verify(call("good")).await;
        assert_eq!(shown(&decision), "granted oauth:corp:alice");
        let super::TokenDecision::Granted(principal) = decision else { unreachable!() };
        assert_eq!(principal.token().unwrap().method, TokenMethod::Introspection);
    }
    assert_eq!(issuer.count("/introspect"), 1);
    issuer.behave(Behaviour::Down);
    advance(29).await;
    assert_eq!(verify(&verifier, "good").await, "granted oauth:corp:alice");
    assert_eq!(verify(&verifier, "other").await, "unavailable 1");
    advance(1).await;
    assert_eq!(verify(&verifier, "good").await, "unavailable 1");
    issuer.behave(Behaviour::Normal);
    assert_eq!(verify(&verifier, "good").await, "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn a_program_without_a_subject_is_its_client() {
    let issuer = TestIssuer::new(ISSUER);
    issuer.add_opaque("program", json!({ "sub": "robot", "client_id": "robot" }));
    issuer.add_opaque("strange", json!({ "active": "true" }));
    issuer.add_opaque("elsewhere", json!({ "aud": "https://other.example" }));
    let verifier = verifier_of(&[(&issuer, issuer.introspecting(false))]);
    assert_eq!(verify(&verifier, "program").await, "granted oauth-client:corp:robot");
    assert_eq!(verify(&verifier, "strange").await, "invalid inactive");
    assert_eq!(verify(&verifier, "elsewhere").await, "invalid audience");
    assert_eq!(verify(&verifier, "unknown").await, "invalid inactive");
    assert_eq!(verify(&verifier, "unknown").await, "invalid inactive");
    assert_eq!(issuer.count("/introspect"), 4, "an inactive token is cached");
    advance(10).await;
    assert_eq!(verify(&verifier, "unknown").await, "invalid inactive");
    assert_eq!(issuer.count("/introspect"), 5);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_not_a_refusal() {
    for (status, text) in [(500, ""), (200, "<html>"), (400, "{\"error\":\"invalid_request\"}")] {
        let issuer = TestIssuer::new(ISSUER);
        issuer.add_opaque("good", json!({}));
        let verifier = verifier_of(&[(&issuer, issuer.introspecting(false))]);
        verify(&verifier, "first").await;
        issuer.behave(Behaviour::Document(status, text.to_owned()));
        for _ in 0..3 {
            assert_eq!(verify(&verifier, "good").await, "unavailable 1", "{status} {text}");
        }
        issuer.behave(Behaviour::Normal);
        assert_eq!(verify(&verifier, "good").await, "granted oauth:corp:alice");
    }
}

#[tokio::test(start_paused = true)]
async fn questions_are_asked_once_and_sixty_four_at_a_time() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = Arc::new(verifier_of(&[(&issuer, issuer.introspecting(false))]));
    verify(&verifier, "first").await;
    issuer.behave(Behaviour::Hanging);
    let tasks: Vec<_> = (0..300_u16)
        .map(|number| {
            let verifier = Arc::clone(&verifier);
            tokio::spawn(async move {
                // Three callers have the same token.
                let token = format!("token-{}", number / 3);
                let [high, low] = number.to_be_bytes();
                let peer = Some([10, high, low, 1].into());
                shown(&verifier.verify(TokenCall { peer, ..call(&token) }).await)
            })
        })
        .collect();
    for _ in 0..100 {
        settle().await;
    }
    assert_eq!(issuer.state.lock().open_questions, 64);
    tokio::time::advance(Duration::from_secs(6)).await;
    for task in tasks {
        assert_eq!(task.await.unwrap(), "unavailable 1");
    }
}

#[tokio::test(start_paused = true)]
async fn the_issuer_may_be_asked_about_signed_tokens_too() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier_of(&[(&issuer, issuer.introspecting(true))]);
    let token = issuer.token(json!({}));
    assert_eq!(verify(&verifier, &token).await, "invalid inactive", "a revoked token");
    let other = issuer.token(json!({ "sub": "bob" }));
    issuer.add_opaque(&other, json!({ "sub": "bob" }));
    assert_eq!(verify(&verifier, &other).await, "granted oauth:corp:bob");
    let forged = format!("{}AA", issuer.token(json!({ "sub": "eve" })));
    let asked = issuer.count("/introspect");
    assert_eq!(verify(&verifier, &forged).await, "invalid signature");
    assert_eq!(issuer.count("/introspect"), asked, "a forged token is not introspected");
    let quiet = verifier_of(&[(&issuer, issuer.introspecting(false))]);
    assert_eq!(verify(&quiet, &token).await, "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn an_issuer_without_keys_is_asked_all_the_same() {
    let issuer = TestIssuer::new(ISSUER);
    let signed = issuer.token(json!({}));
    issuer.state.lock().keys.clear();
    issuer.add_opaque("good", json!({}));
    let verifier = verifier_of(&[(&issuer, issuer.introspecting(false))]);
    assert_eq!(verify(&verifier, "good").await, "granted oauth:corp:alice");
    assert_eq!(verify(&verifier, &signed).await, "unavailable 5");
    advance(60).await;
    assert_eq!(verify(&verifier, "good").await, "granted oauth:corp:alice");
}
