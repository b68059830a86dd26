//! Tokens that are valid, and tokens that are wrong in each of the ways that attackers try.

use std::net::TcpListener;

use creole::client::oauth::SigningKey;
use serde_json::{Value, json};

use crate::issuer::{TestIssuer, now, unsigned};
use crate::{KEY, TokenServer, message, sha256, table, with_token};

#[test]
fn a_token_is_admitted_beside_keys() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let token = issuer.token(&protected.url(), json!({}));
    for _ in 0..3 {
        assert_eq!(protected.status(&token), 200);
    }
    assert_eq!(protected.status(KEY), 200);
    assert_eq!((issuer.visits("/keys"), issuer.visits("/introspect")), (1, 0));
    let nothing = protected.send(&message());
    assert_eq!(nothing.head.status, 401);
    let challenge = nothing.head.field("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer realm=\"creole\", resource_metadata="), "{challenge}");
    assert!(!challenge.contains("error"), "{challenge}");
    protected.refuses("creole_unknown");
    protected.refuses("opaque");
}

#[test]
fn tokens_without_a_right_signature_are_refused() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let (url, key) = (protected.url(), issuer.key());
    let claims = issuer.claims(&url, json!({}));
    let header = |algorithm: Value| json!({ "typ": "at+jwt", "kid": key.id(), "alg": algorithm });
    let stranger = SigningKey::generate().unwrap();
    let jwk = stranger.public_key();
    for algorithm in [json!("none"), json!("None"), json!("nOnE"), json!(["ES256"]), json!(null)] {
        protected.refuses(&unsigned(&header(algorithm.clone()), &claims, b""));
        protected.refuses(&unsigned(&header(algorithm), &claims, b"any"));
    }
    // The public key of the issuer as a shared secret.
    for secret in [key.public_key().to_string(), format!("{:?}", key.public_key())] {
        let unmarked = unsigned(&header(json!("HS256")), &claims, b"");
        let message = unmarked.trim_end_matches('.');
        let signature = hmac(secret.as_bytes(), message.as_bytes());
        protected.refuses(&unsigned(&header(json!("HS256")), &claims, &signature));
    }
    // A key that the token brings along.
    let own_id = key.id();
    protected.refuses(&issuer.sign(&stranger, json!({ "kid": own_id }), &claims));
    protected.refuses(&issuer.sign(&stranger, json!({ "kid": own_id, "jwk": jwk }), &claims));
    protected.refuses(&issuer.sign(&key, json!({ "crit": ["exp"] }), &claims));
    protected.refuses("a.b.c.d.e");
    assert!(issuer.visits("/keys") <= 2, "{}", issuer.visits("/keys"));
    protected.logs("algorithm");
    assert_eq!(protected.status(&issuer.token(&url, json!({}))), 200);
}

#[test]
fn addresses_in_a_token_are_never_asked() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/keys", listener.local_addr().unwrap());
    listener.set_nonblocking(true).unwrap();
    let (stranger, claims) =
        (SigningKey::generate().unwrap(), issuer.claims(&protected.url(), json!({})));
    for member in ["jku", "x5u"] {
        let header = json!({ member: address, "kid": issuer.key().id() });
        protected.refuses(&issuer.sign(&stranger, header, &claims));
    }
    assert!(listener.accept().is_err(), "no connection");
}

#[test]
fn algorithms_are_those_of_the_configuration() {
    let issuer = TestIssuer::start();
    let protected =
        TokenServer::start(&table("corp", &issuer, "algorithms = [\"RS256\", \"EdDSA\"]"));
    protected.refuses(&issuer.token(&protected.url(), json!({})));
    protected.logs("algorithm");
    let protected = TokenServer::start(&table("corp", &issuer, "algorithms = [\"ES256\"]"));
    assert_eq!(protected.status(&issuer.token(&protected.url(), json!({}))), 200);
}

#[test]
fn the_audience_is_this_resource() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let (url, address) = (protected.url(), protected.server.address());
    for audience in [
        json!(null),
        json!(format!("{url}/")),
        json!(format!("http://{address}")),
        json!(format!("{url}2")),
        json!(format!("HTTP://{address}/mcp")),
        json!([]),
    ] {
        protected.refuses(&issuer.token(&url, json!({ "aud": audience })));
    }
    protected.logs("audience");
    let several = json!(["https://other.example", url]);
    assert_eq!(protected.status(&issuer.token(&url, json!({ "aud": several }))), 200);
}

#[test]
fn a_token_for_one_server_is_refused_at_the_other() {
    let issuer = TestIssuer::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let servers = "[[servers]]\nname = \"first\"\npacks = [\"echo\"]\n\
                   [[servers]]\nname = \"house\"\npath = \"/house\"\npacks = [\"echo\"]\n";
    std::fs::write(&file, format!("{servers}{}", table("corp", &issuer, ""))).unwrap();
    let server =
        creole_acceptance::http::ListeningServer::start(&[file.to_str().unwrap()]).unwrap();
    let house = format!("http://{}/house", server.address());
    let token = issuer.token(&house, json!({}));
    let status = |request: creole_acceptance::http::Request| {
        request.send(server.address()).unwrap().head.status
    };
    assert_eq!(status(with_token(&token)), 401);
    let at_house = creole_acceptance::http::Request::to("POST", "/house", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}")
        .with("Content-Type", "application/json")
        .with("Accept", "application/json, text/event-stream")
        .with("Authorization", &format!("Bearer {token}"));
    assert_eq!(status(at_house), 200);
}

#[test]
fn the_issuer_is_compared_byte_by_byte() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    protected.refuses(&issuer.token(&url, json!({ "iss": format!("{}/", issuer.name()) })));
    protected.refuses(&issuer.token(&url, json!({ "iss": null })));
    protected.logs("issuer");
    assert!(issuer.requests().is_empty(), "nothing is asked for: {:?}", issuer.requests());
}

#[test]
fn the_key_of_another_issuer_is_refused() {
    let (one, other) = (TestIssuer::start(), TestIssuer::start());
    let tables = format!("{}{}", table("one", &one, ""), table("other", &other, ""));
    let protected = TokenServer::start(&tables);
    let url = protected.url();
    protected.refuses(&one.sign(&other.key(), json!({}), &one.claims(&url, json!({}))));
    protected.logs("unknown-key");
    assert_eq!(protected.status(&other.token(&url, json!({}))), 200);
    assert_eq!(protected.status(&one.token(&url, json!({}))), 200);
}

#[test]
fn other_kinds_of_tokens_are_refused() {
    let issuer = TestIssuer::start();
    let strict = TokenServer::by(&issuer);
    let claims = |url: &str, changes| issuer.claims(url, changes);
    let plain = |claims: &Value| issuer.sign(&issuer.key(), json!({ "typ": "JWT" }), claims);
    strict.refuses(&plain(&claims(&strict.url(), json!({}))));
    strict.logs("typ");
    let lenient = TokenServer::start(&table("corp", &issuer, "token_type = \"jwt\""));
    let url = lenient.url();
    assert_eq!(lenient.status(&plain(&claims(&url, json!({})))), 200);
    let events = json!({ "http://schemas.openid.net/event/backchannel-logout": {} });
    for changes in [
        json!({ "nonce": "n", "at_hash": "h" }),
        json!({ "typ": "ID" }),
        json!({ "typ": "Refresh" }),
        json!({ "typ": "Logout" }),
        json!({ "events": events }),
    ] {
        lenient.refuses(&plain(&claims(&url, changes)));
    }
}

#[test]
fn times_hold_with_a_minute_of_skew() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    // A few seconds from the limits, because the clock of the server moves.
    for changes in
        [json!({ "exp": now() - 50 }), json!({ "nbf": now() + 59 }), json!({ "iat": now() + 59 })]
    {
        assert_eq!(protected.status(&issuer.token(&url, changes.clone())), 200, "{changes}");
    }
    for changes in
        [json!({ "exp": now() - 61 }), json!({ "nbf": now() + 70 }), json!({ "iat": now() + 70 })]
    {
        protected.refuses(&issuer.token(&url, changes));
    }
    protected.logs("expired");
    protected.logs("claims");
}

#[test]
fn secrets_are_not_logged() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::by(&issuer);
    let url = protected.url();
    let wrong = issuer.token(&url, json!({ "aud": "canary-audience", "sub": "canary-subject" }));
    protected.refuses(&wrong);
    assert_eq!(protected.status(&issuer.token(&url, json!({}))), 200);
    protected.logs("audience");
    let log = protected.server.log();
    assert!(!log.contains("canary") && !log.contains(&wrong), "{log}");
    let query = message().with("Authorization", "Bearer ").replacing("Accept", "*/*");
    assert_eq!(protected.send(&query).head.status, 401);
}

/// HMAC with SHA-256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    let key = if key.len() > 64 { sha256(key).to_vec() } else { key.to_vec() };
    block[..key.len()].copy_from_slice(&key);
    let pad = |byte: u8| block.map(|it| it ^ byte);
    let inner = sha256(&[&pad(0x36)[..], message].concat());
    sha256(&[&pad(0x5c)[..], &inner[..]].concat())
}
