//! Issuers that are down, rotate their keys, or publish something else.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use creole::client::oauth::SigningKey;
use creole_acceptance::oauth::RogueResponse;
use creole_test_wait::blocking::eventually;
use serde_json::json;

use crate::issuer::{TestIssuer, metadata};
use crate::{KEY, TokenServer, table, with_token};

/// Nothing is there.
fn not_found() -> RogueResponse {
    RogueResponse::Text(404, String::new(), String::new())
}

#[test]
fn without_keys_no_token_is_refused_until_the_issuer_is_back() {
    let issuer = TestIssuer::start();
    issuer.misbehave(|_, _| Some(RogueResponse::Text(500, String::new(), String::new())));
    let protected = TokenServer::by(&issuer);
    let token = issuer.token(&protected.url(), json!({}));
    for _ in 0..20 {
        let response = protected.send(&with_token(&token));
        let wait = response.head.field("retry-after");
        assert_eq!((response.head.status, wait), (503, Some("5")), "{}", response.text());
        assert!(response.head.field("www-authenticate").is_none());
    }
    assert!(issuer.requests().len() <= 3, "{:?}", issuer.requests());
    assert_eq!(protected.status(KEY), 200);
    issuer.behave();
    let begin = Instant::now();
    eventually(|| "the token is not accepted".to_owned(), || protected.status(&token) == 200);
    assert!(begin.elapsed() < Duration::from_secs(6), "{:?}", begin.elapsed());
}

#[test]
fn documents_that_are_too_long_or_broken_are_failures() {
    for wrong in [
        RogueResponse::Endless,
        RogueResponse::Text(200, String::new(), "<html>".to_owned()),
        RogueResponse::Json(200, json!({ "keys": [] })),
        RogueResponse::Json(200, json!({ "keys": [{ "kty": "oct", "k": "AAAA" }] })),
    ] {
        let issuer = TestIssuer::start();
        let answer = wrong.clone();
        issuer.misbehave(move |request, _| (request.path == "/keys").then(|| answer.clone()));
        let protected = TokenServer::by(&issuer);
        let before = protected.server.weight().memory;
        let token = issuer.token(&protected.url(), json!({}));
        assert_eq!(protected.status(&token), 503, "{wrong:?}");
        let grown = protected.server.weight().memory.saturating_sub(before);
        assert!(grown < 8 * 1024 * 1024, "{grown} bytes for {wrong:?}");
        protected.server.until_said("the keys of an issuer cannot be fetched");
        issuer.behave();
        let text = || format!("not accepted after {wrong:?}");
        eventually(text, || protected.status(&token) == 200);
    }
}

#[test]
fn an_issuer_that_hangs_delays_only_callers_that_need_it() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    assert_eq!(protected.status(&issuer.token(&url, json!({}))), 200);
    issuer.misbehave(|request, _| (request.path == "/keys").then_some(RogueResponse::Slow));
    let unknown = SigningKey::generate().unwrap();
    let unknown = issuer.sign(&unknown, json!({}), &issuer.claims(&url, json!({})));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let begin = Instant::now();
            (protected.status(&unknown), begin.elapsed())
        });
        let text = || "the key set is never asked for".to_owned();
        eventually(text, || issuer.visits("/keys") == 2);
        let begin = Instant::now();
        assert_eq!(protected.status(&issuer.token(&url, json!({ "sub": "bob" }))), 200);
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        let (status, time) = waiting.join().unwrap();
        assert_eq!(status, 401);
        assert!(time < Duration::from_millis(6_500), "{time:?}");
    });
}

#[test]
fn a_new_key_is_found_with_one_request() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    let old = issuer.token(&url, json!({}));
    assert_eq!(protected.status(&old), 200);
    issuer.rotate();
    assert_eq!(protected.status(&issuer.token(&url, json!({}))), 200);
    assert_eq!((issuer.visits("/keys"), issuer.requests().len()), (2, 3));
    protected.refuses(&old);
    protected.logs("unknown-key");
}

#[test]
fn a_crowd_with_unknown_keys_causes_one_request() {
    let issuer = TestIssuer::start();
    let lines =
        format!("[http]\ntrusted_proxies = [\"127.0.0.1\"]\n{}", table("corp", &issuer, ""));
    let protected = TokenServer::start(&lines);
    let url = protected.url();
    let valid = issuer.token(&url, json!({}));
    assert_eq!(protected.status(&valid), 200);
    let key = SigningKey::generate().unwrap();
    for number in 0..200 {
        let header = json!({ "kid": format!("kid-{number}") });
        let token = issuer.sign(&key, header, &issuer.claims(&url, json!({})));
        let from = format!("198.51.{}.7", number % 50);
        let request = with_token(&token).with("X-Forwarded-For", &from);
        assert_eq!(protected.send(&request).head.status, 401);
    }
    assert_eq!(issuer.visits("/keys"), 2, "the first fetch, and one search");
    assert_eq!(protected.status(&valid), 200);
}

#[test]
fn keys_with_the_same_id_are_not_used() {
    let issuer = TestIssuer::start();
    let same = SigningKey::generate().unwrap().with_id(issuer.key().id());
    let other = SigningKey::generate().unwrap();
    issuer.add_key(same.clone());
    issuer.add_key(other.clone());
    let protected = TokenServer::by(&issuer);
    let claims = issuer.claims(&protected.url(), json!({}));
    protected.refuses(&issuer.sign(&issuer.key(), json!({}), &claims));
    protected.refuses(&issuer.sign(&same, json!({}), &claims));
    protected.server.until_said("have the same id");
    assert_eq!(protected.status(&issuer.sign(&other, json!({}), &claims)), 200);
}

#[test]
fn metadata_of_another_issuer_gives_no_keys() {
    let issuer = TestIssuer::start();
    issuer.misbehave(|request, origin| {
        let mut document = metadata(origin);
        document["issuer"] = format!("{origin}/").into();
        request.path.contains("well-known").then_some(RogueResponse::Json(200, document))
    });
    let protected = TokenServer::by(&issuer);
    assert_eq!(protected.status(&issuer.token(&protected.url(), json!({}))), 503);
    let name = issuer.name();
    protected.server.until_said(&format!("the metadata of {name} names {name}/"));
    assert_eq!(issuer.visits("/keys"), 0);
}

#[test]
fn redirects_stay_within_the_origin_and_end() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let other = format!("http://{}/keys", elsewhere.local_addr().unwrap());
    for target in ["/keys".to_owned(), other, "http://169.254.169.254/keys".to_owned()] {
        let issuer = TestIssuer::start();
        let to = target.clone();
        issuer.misbehave(move |request, _| {
            (request.path == "/keys").then(|| RogueResponse::Redirect(to.clone()))
        });
        let protected = TokenServer::by(&issuer);
        assert_eq!(protected.status(&issuer.token(&protected.url(), json!({}))), 503, "{target}");
        assert!(issuer.visits("/keys") <= 4, "{target}: {}", issuer.visits("/keys"));
    }
    assert!(elsewhere.accept().is_err(), "no connection");
}

#[test]
fn the_appended_openid_document_is_found_last() {
    let issuer = TestIssuer::start();
    let name = format!("{}/realms/corp", issuer.name());
    let own = name.clone();
    issuer.misbehave(move |request, origin| match request.path.as_str() {
        "/realms/corp/.well-known/openid-configuration" => {
            let mut document = metadata(origin);
            document["issuer"] = own.clone().into();
            Some(RogueResponse::Json(200, document))
        }
        "/keys" => None,
        _ => Some(not_found()),
    });
    let protected = TokenServer::start(&format!("[auth.issuers.corp]\nissuer = \"{name}\"\n"));
    let token = issuer.token(&protected.url(), json!({ "iss": name }));
    assert_eq!(protected.status(&token), 200);
    let expected = [
        "/.well-known/oauth-authorization-server/realms/corp",
        "/.well-known/openid-configuration/realms/corp",
        "/realms/corp/.well-known/openid-configuration",
        "/keys",
    ];
    assert_eq!(issuer.requests(), expected);
}

#[test]
fn a_reload_keeps_the_keys_of_an_issuer_that_is_down() {
    let issuer = TestIssuer::start();
    let mut protected = TokenServer::by(&issuer);
    let token = issuer.token(&protected.url(), json!({}));
    let first = protected.send(&with_token(&token));
    let session = first.head.field("mcp-session-id").unwrap().to_owned();
    issuer.misbehave(|_, _| Some(RogueResponse::Text(500, String::new(), String::new())));
    protected.server.signal("HUP");
    let before = issuer.requests().len();
    let text = || "the keys are not fetched again".to_owned();
    eventually(text, || protected.status(&token) == 200 && issuer.requests().len() > before);
    let ping = creole_acceptance::http::Request::post(
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}",
    )
    .with("Authorization", &format!("Bearer {token}"))
    .with("Mcp-Session-Id", &session);
    assert_eq!(protected.send(&ping).head.status, 200, "the session goes on");
}
