//! Opaque tokens, about which the issuer is asked.

use creole_acceptance::oauth::RogueResponse;
use serde_json::{Value, json};

use crate::issuer::TestIssuer;
use crate::{KEY, TokenServer, table, with_token};

const INTROSPECTION: &str =
    "introspection = { client_id = \"creole\", client_secret = \"canary-introspection\" }";

/// An answer about a valid token for this server, with these members changed.
fn active(protected: &TokenServer, changes: Value) -> Value {
    let mut answer = json!({
        "active": true, "aud": protected.url(), "sub": "alice", "client_id": "editor",
        "exp": crate::issuer::now() + 600, "scope": "mcp",
    });
    for (name, value) in changes.as_object().unwrap() {
        answer[name] = value.clone();
    }
    answer.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    answer
}

#[test]
fn the_issuer_is_asked_once_about_a_token() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::start(&table("corp", &issuer, INTROSPECTION));
    issuer.add_opaque("good", active(&protected, json!({})));
    for _ in 0..3 {
        assert_eq!(protected.status("good"), 200);
    }
    assert_eq!(issuer.visits("/introspect"), 1);
    assert_eq!(protected.status(KEY), 200);
    assert_eq!(issuer.visits("/introspect"), 1, "a key is not introspected");
    let signed = issuer.token(&protected.url(), json!({}));
    assert_eq!(protected.status(&signed), 200);
    assert_eq!(issuer.visits("/introspect"), 1, "nor about a signed token");
    assert!(!protected.server.log().contains("canary"));
}

#[test]
fn only_a_clear_answer_counts() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::start(&table("corp", &issuer, INTROSPECTION));
    let answers = [
        ("text", json!({ "active": "true" })),
        ("number", json!({ "active": 1 })),
        ("absent", json!({ "active": null })),
        ("elsewhere", json!({ "aud": "https://other.example" })),
        ("nowhere", json!({ "aud": null })),
        ("old", json!({ "exp": 1 })),
    ];
    for (token, changes) in answers {
        issuer.add_opaque(token, active(&protected, changes));
        protected.refuses(token);
    }
    protected.refuses("unknown");
    protected.logs("inactive");
    for wrong in [
        RogueResponse::Text(500, String::new(), String::new()),
        RogueResponse::Text(200, String::new(), "<html>".to_owned()),
        RogueResponse::Json(400, json!({ "error": "unsupported_token_type" })),
    ] {
        issuer.add_opaque("good", active(&protected, json!({})));
        let answer = wrong.clone();
        issuer.misbehave(move |request, _| (request.path == "/introspect").then(|| answer.clone()));
        let response = protected.send(&with_token("good"));
        assert_eq!(response.head.status, 503, "{wrong:?}");
        assert_eq!(response.head.field("retry-after"), Some("1"));
    }
    protected.server.until_said("an issuer cannot be asked about access tokens");
    issuer.behave();
    assert_eq!(protected.status("good"), 200);
}

#[test]
fn a_network_with_many_wrong_tokens_waits() {
    let issuer = TestIssuer::start();
    let protected = TokenServer::start(&table("corp", &issuer, INTROSPECTION));
    issuer.add_opaque("good", active(&protected, json!({})));
    assert_eq!(protected.status("good"), 200);
    for number in 0..100 {
        assert_eq!(protected.status(&format!("garbage-{number}")), 401);
    }
    let response = protected.send(&with_token("garbage-more"));
    assert_eq!(response.head.status, 429);
    let wait: u64 = response.head.field("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(protected.status("garbage-99"), 401, "a cached refusal");
    assert_eq!((protected.status("good"), protected.status(KEY)), (200, 200));
    let lines = protected.server.log().matches("an access token was refused").count();
    assert!(lines <= 60, "{lines} lines");
}

#[test]
fn a_revoked_token_is_noticed_where_the_issuer_is_always_asked() {
    let issuer = TestIssuer::start();
    let keys = format!("introspect = \"always\"\n{INTROSPECTION}");
    let protected = TokenServer::start(&table("corp", &issuer, &keys));
    let token = issuer.token(&protected.url(), json!({}));
    protected.refuses(&token);
    protected.logs("inactive");
    let other = issuer.token(&protected.url(), json!({ "sub": "bob" }));
    issuer.add_opaque(&other, active(&protected, json!({ "sub": "bob" })));
    assert_eq!(protected.status(&other), 200);
}
