//! Keys of an issuer that rotates them, is down, hangs, or publishes something else.

use std::sync::Arc;
use std::time::Duration;

use creole_oauth::crypto::jose::SigningKey;
use serde_json::json;
use tokio::time::{Instant, timeout};

use super::{
    BEGIN, Behaviour, ISSUER, TestIssuer, advance, call, settle, shown, verifier, verifier_of,
    verify,
};
use crate::auth::oauth::issuer::Issuer;
use crate::auth::oauth::verifier::{TokenVerifier, VerifierParts};

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_once_and_a_cached_token_needs_nothing() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({}));
    assert!(verifier.try_verify(call(&token)).is_none());
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
    issuer.behave(Behaviour::Down);
    let cached = verifier.try_verify(call(&token)).unwrap();
    assert_eq!(shown(&cached), "granted oauth:corp:alice");
    assert_eq!((issuer.count("/keys"), issuer.count("-server")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn unknown_keys_cause_one_fetch_a_minute() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    assert_eq!(verify(&verifier, &issuer.token(json!({}))).await, "granted oauth:corp:alice");
    for number in 0..60_u8 {
        let key = SigningKey::generate().unwrap().with_id(&format!("kid-{number}"));
        let token = issuer.token_of(&key, json!({}));
        let peer = Some([10, 0, number, 1].into());
        let decision = verifier.verify(super::TokenCall { peer, ..call(&token) }).await;
        assert_eq!(shown(&decision), "invalid unknown-key");
    }
    assert_eq!(issuer.count("/keys"), 2, "the first fetch, and one search");
    advance(61).await;
    let key = SigningKey::generate().unwrap();
    assert_eq!(verify(&verifier, &issuer.token_of(&key, json!({}))).await, "invalid unknown-key");
    assert_eq!(issuer.count("/keys"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_new_key_is_found_and_a_withdrawn_one_is_refused() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let old = issuer.token(json!({}));
    assert_eq!(verify(&verifier, &old).await, "granted oauth:corp:alice");
    issuer.rotate();
    let new = issuer.token(json!({}));
    assert_eq!(verify(&verifier, &new).await, "granted oauth:corp:alice");
    assert_eq!((issuer.count("/keys"), issuer.count("-server")), (2, 1), "one GET");
    advance(61).await;
    assert_eq!(verify(&verifier, &old).await, "invalid unknown-key");
    assert_eq!(verify(&verifier, &new).await, "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn without_keys_nobody_is_refused_until_the_issuer_is_back() {
    let issuer = TestIssuer::new(ISSUER);
    issuer.behave(Behaviour::Down);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({}));
    for _ in 0..100 {
        assert_eq!(verify(&verifier, &token).await, "unavailable 5");
    }
    assert!(issuer.count("") <= 3, "{}", issuer.count(""));
    for _ in 0..100 {
        advance(5).await;
        assert_eq!(verify(&verifier, &token).await, "unavailable 5");
    }
    issuer.behave(Behaviour::Normal);
    advance(5).await;
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn old_keys_serve_for_a_day_while_the_issuer_is_down() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = verifier(&issuer);
    let token = issuer.token(json!({ "exp": BEGIN + 1_000_000 }));
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
    issuer.behave(Behaviour::Down);
    advance(23 * 3_600).await;
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
    let unknown = issuer.token_of(&SigningKey::generate().unwrap(), json!({}));
    assert_eq!(verify(&verifier, &unknown).await, "invalid unknown-key");
    advance(3_600 + 60).await;
    assert_eq!(verify(&verifier, &token).await, "unavailable 5");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_issuer_delays_only_what_needs_it() {
    let issuer = TestIssuer::new(ISSUER);
    let verifier = Arc::new(verifier(&issuer));
    let token = issuer.token(json!({}));
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
    issuer.behave(Behaviour::Hanging);
    let unknown = issuer.token_of(&SigningKey::generate().unwrap(), json!({}));
    let begin = Instant::now();
    let waiting = {
        let verifier = Arc::clone(&verifier);
        tokio::spawn(async move { verify(&verifier, &unknown).await })
    };
    settle().await;
    let other = issuer.token(json!({ "sub": "bob" }));
    let quick = timeout(Duration::from_millis(1), verify(&verifier, &other)).await;
    assert_eq!(quick.unwrap(), "granted oauth:corp:bob");
    assert_eq!(waiting.await.unwrap(), "invalid unknown-key");
    assert_eq!(begin.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn keys_are_renewed_in_the_background_at_four_fifths_of_their_age() {
    let issuer = TestIssuer::new(ISSUER);
    issuer.state.lock().max_age = Some(1_000);
    let verifier = verifier(&issuer);
    let fresh = || issuer.token(json!({ "jti": issuer.clock.now() }));
    verify(&verifier, &fresh()).await;
    advance(799).await;
    verify(&verifier, &fresh()).await;
    settle().await;
    assert_eq!(issuer.count("/keys"), 1);
    advance(1).await;
    issuer.behave(Behaviour::Hanging);
    assert_eq!(verify(&verifier, &fresh()).await, "granted oauth:corp:alice", "without waiting");
    settle().await;
    assert_eq!(issuer.count("/keys"), 2);
    // The fetch ends after 20 s. The next ones come after 1, 2, 4 … 60 s.
    issuer.behave(Behaviour::Down);
    advance(21).await;
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let before = issuer.count("");
        advance(seconds - 1).await;
        verify(&verifier, &fresh()).await;
        settle().await;
        assert_eq!(issuer.count(""), before, "before {seconds}");
        advance(1).await;
        verify(&verifier, &fresh()).await;
        settle().await;
        assert!(issuer.count("") > before, "after {seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_age_is_within_five_minutes_and_a_day() {
    for (max_age, renewed_after) in [(Some(0), 240), (Some(10_000_000), 69_120), (None, 2_880)] {
        let issuer = TestIssuer::new(ISSUER);
        issuer.state.lock().max_age = max_age;
        let verifier = verifier(&issuer);
        let fresh = || issuer.token(json!({ "exp": BEGIN + 1_000_000, "jti": issuer.clock.now() }));
        verify(&verifier, &fresh()).await;
        advance(renewed_after - 1).await;
        verify(&verifier, &fresh()).await;
        settle().await;
        assert_eq!(issuer.count("/keys"), 1, "{max_age:?}");
        advance(1).await;
        verify(&verifier, &fresh()).await;
        settle().await;
        assert_eq!(issuer.count("/keys"), 2, "{max_age:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_document_changes_nothing() {
    for document in [
        (200, "{\"keys\":[]}"),
        (200, "<html>"),
        (200, ""),
        (404, ""),
        (302, ""),
        (200, "{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}"),
    ] {
        let issuer = TestIssuer::new(ISSUER);
        let verifier = verifier(&issuer);
        let token = issuer.token(json!({ "exp": BEGIN + 100_000 }));
        verify(&verifier, &token).await;
        issuer.behave(Behaviour::Document(document.0, document.1.to_owned()));
        advance(3_000).await;
        verify(&verifier, &token).await;
        settle().await;
        assert_eq!(issuer.count("/keys"), 2, "{document:?}");
        advance(61).await;
        assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice", "{document:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_of_another_issuer_gives_no_keys() {
    let issuer = TestIssuer::new(ISSUER);
    let other =
        json!({ "issuer": "https://id.example.com/", "jwks_uri": "https://id.example.com/keys" });
    issuer.behave(Behaviour::Document(200, other.to_string()));
    let verifier = verifier(&issuer);
    assert_eq!(verify(&verifier, &issuer.token(json!({}))).await, "unavailable 5");
    assert_eq!(issuer.count("/keys"), 0);
}

#[tokio::test(start_paused = true)]
async fn keys_with_the_same_id_are_not_used() {
    let issuer = TestIssuer::new(ISSUER);
    let other = SigningKey::generate().unwrap().with_id(issuer.key().id());
    let third = SigningKey::generate().unwrap();
    issuer.state.lock().keys.extend([other.clone(), third.clone()]);
    let verifier = verifier(&issuer);
    for key in [issuer.key(), other] {
        assert_eq!(
            verify(&verifier, &issuer.token_of(&key, json!({}))).await,
            "invalid unknown-key"
        );
    }
    let token = issuer.token_of(&third, json!({}));
    assert_eq!(verify(&verifier, &token).await, "granted oauth:corp:alice");
}

#[tokio::test(start_paused = true)]
async fn keys_belong_to_one_issuer() {
    let (one, other) = (TestIssuer::new(ISSUER), TestIssuer::new("https://other.example.com"));
    let mut second = other.settings();
    second.label = "other".into();
    let verifier = verifier_of(&[(&one, one.settings()), (&other, second)]);
    let forged = one.token_of(&other.key(), json!({}));
    assert_eq!(verify(&verifier, &forged).await, "invalid unknown-key");
    assert_eq!(verify(&verifier, &one.token(json!({}))).await, "granted oauth:corp:alice");
    assert_eq!(verify(&verifier, &other.token(json!({}))).await, "granted oauth:other:alice");
}

#[tokio::test(start_paused = true)]
async fn a_reload_empties_the_caches_and_keeps_the_keys() {
    let issuer = TestIssuer::new(ISSUER);
    let parts = Arc::new(VerifierParts::default());
    let first = Arc::new(Issuer::with_exchange(issuer.settings(), None, issuer.exchange()));
    let verifier = TokenVerifier::with_issuers(vec![Arc::clone(&first)], Arc::clone(&parts));
    let token = issuer.token(json!({}));
    verify(&verifier, &token).await;
    issuer.behave(Behaviour::Down);
    let again = |settings| {
        let issuer = Issuer::with_exchange(settings, Some(&first), issuer.exchange());
        TokenVerifier::with_issuers(vec![Arc::new(issuer)], Arc::clone(&parts))
    };
    let reloaded = again(issuer.settings());
    assert!(reloaded.try_verify(call(&token)).is_none());
    assert_eq!(verify(&reloaded, &token).await, "granted oauth:corp:alice");
    settle().await;
    assert!(issuer.count("") > 2, "the keys are fetched again in the background");
    let mut moved = issuer.settings();
    moved.allows_private = true;
    assert_eq!(verify(&again(moved), &token).await, "unavailable 5");
}

#[tokio::test]
async fn keys_of_a_file_are_read() {
    let issuer = TestIssuer::new(ISSUER);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.json");
    let mut jwk = issuer.key().public_key();
    jwk["kid"] = issuer.key().id().into();
    std::fs::write(&path, json!({ "keys": [jwk] }).to_string()).unwrap();
    let mut settings = issuer.settings();
    settings.keys = crate::auth::oauth::KeySource::File(path);
    let verifier = verifier_of(&[(&issuer, settings.clone())]);
    assert_eq!(verify(&verifier, &issuer.token(json!({}))).await, "granted oauth:corp:alice");
    assert_eq!(issuer.count(""), 0);
    settings.keys = crate::auth::oauth::KeySource::File(folder.path().join("none"));
    let verifier = verifier_of(&[(&issuer, settings)]);
    assert_eq!(verify(&verifier, &issuer.token(json!({}))).await, "unavailable 5");
}
