//! The rules for headers and claims.

use serde_json::{Value, json};

use super::{AcceptedAudience, AccessToken, TokenRules};
use crate::resource::algorithm::SignatureAlgorithm;
use crate::resource::claim_path::ClaimPath;
use crate::resource::compact::CompactToken;
use crate::resource::refusal::TokenRefusal;
use crate::resource::testing::{ISSUER, NOW, RESOURCE, TestKey, claims};

fn rules() -> TokenRules {
    TokenRules::new(ISSUER)
}

fn path(text: &str) -> Option<ClaimPath> {
    Some(ClaimPath::new(text).unwrap())
}

fn check_with(rules: &TokenRules, changes: Value) -> Result<AccessToken, TokenRefusal> {
    let audiences = [RESOURCE.to_owned(), "66666666-7777".to_owned()];
    rules.check_claims(claims(changes), AcceptedAudience::OneOf(&audiences), NOW)
}

fn check(changes: Value) -> Result<AccessToken, TokenRefusal> {
    check_with(&rules(), changes)
}

#[test]
fn a_valid_token_names_its_caller() {
    let token = check(json!({ "scope": "mcp files:read" })).unwrap();
    assert_eq!(
        (token.subject.as_deref(), token.client.as_deref()),
        (Some("alice"), Some("editor"))
    );
    assert!(!token.is_program && token.expires_at == NOW + 300);
    assert_eq!(token.scopes.to_parameter().as_deref(), Some("mcp files:read"));
    assert!(!format!("{token:?}").contains("alice"));
}

#[test]
fn the_header_says_that_it_is_an_access_token() {
    let header = |rules: &TokenRules, header: Value| {
        let text = TestKey::new().sign(&header, &json!({}));
        rules.check_header(&CompactToken::parse(&text).unwrap())
    };
    let plain = TokenRules { takes_plain_jwt: true, ..rules() };
    for kind in ["at+jwt", "AT+JWT", "application/at+jwt"] {
        let typed = json!({ "alg": "ES256", "typ": kind });
        assert_eq!(header(&rules(), typed.clone()), Ok(SignatureAlgorithm::Es256));
        assert_eq!(header(&plain, typed), Ok(SignatureAlgorithm::Es256));
    }
    for typed in [json!({ "alg": "ES256" }), json!({ "alg": "ES256", "typ": "jwt" })] {
        assert_eq!(header(&rules(), typed.clone()), Err(TokenRefusal::Typ), "{typed}");
        assert_eq!(header(&plain, typed), Ok(SignatureAlgorithm::Es256));
    }
    for kind in [json!("dpop+jwt"), json!("logout+jwt"), json!(""), json!(1), json!("at+jwt ")] {
        let typed = json!({ "alg": "ES256", "typ": kind });
        assert_eq!(header(&plain, typed), Err(TokenRefusal::Typ), "{kind}");
    }
    let other = json!({ "alg": "ES384", "typ": "at+jwt" });
    assert_eq!(header(&rules(), other.clone()), Err(TokenRefusal::Algorithm));
    let wider = TokenRules { algorithms: vec![SignatureAlgorithm::Es384], ..rules() };
    assert_eq!(header(&wider, other), Ok(SignatureAlgorithm::Es384));
}

#[test]
fn the_audience_is_the_resource_byte_by_byte() {
    for audience in
        [json!(RESOURCE), json!([RESOURCE]), json!(["x", RESOURCE]), json!("66666666-7777")]
    {
        assert!(check(json!({ "aud": audience })).is_ok(), "{audience}");
    }
    let many: Vec<_> = (0..32).map(|it| it.to_string()).chain([RESOURCE.to_owned()]).collect();
    for audience in [
        json!(null),
        json!("https://mcp.example.com/mcp/"),
        json!("https://mcp.example.com"),
        json!("https://mcp.example.com/mcp2"),
        json!("https://mcp.example.com:443/mcp"),
        json!("HTTPS://MCP.example.com/mcp"),
        json!([]),
        json!({}),
        json!(1),
        json!([RESOURCE, 1]),
        json!([[RESOURCE]]),
        json!(many),
        json!(""),
    ] {
        assert_eq!(check(json!({ "aud": audience })), Err(TokenRefusal::Audience), "{audience}");
    }
}

#[test]
fn the_issuer_is_compared_byte_by_byte() {
    for issuer in [
        json!(null),
        json!(format!("{ISSUER}/")),
        json!("https://ID.example.com/realms/corp"),
        json!(7),
        json!([ISSUER]),
    ] {
        assert_eq!(check(json!({ "iss": issuer })), Err(TokenRefusal::Issuer), "{issuer}");
    }
}

#[test]
fn times_hold_with_a_minute_of_skew() {
    for (changes, expected) in [
        (json!({ "exp": NOW - 59 }), Ok(())),
        (json!({ "exp": NOW - 60 }), Ok(())),
        (json!({ "exp": NOW - 61 }), Err(TokenRefusal::Expired)),
        (json!({ "exp": 0 }), Err(TokenRefusal::Expired)),
        (json!({ "exp": NOW as f64 + 0.9 }), Ok(())),
        (json!({ "exp": 1e300 }), Err(TokenRefusal::Claims)),
        (json!({ "exp": -1 }), Err(TokenRefusal::Claims)),
        (json!({ "exp": "1900000000" }), Err(TokenRefusal::Claims)),
        (json!({ "exp": true }), Err(TokenRefusal::Claims)),
        (json!({ "exp": null }), Err(TokenRefusal::Claims)),
        (json!({ "nbf": NOW + 59 }), Ok(())),
        (json!({ "nbf": NOW + 61 }), Err(TokenRefusal::Claims)),
        (json!({ "nbf": "x" }), Err(TokenRefusal::Claims)),
        (json!({ "iat": NOW + 59 }), Ok(())),
        (json!({ "iat": NOW + 61 }), Err(TokenRefusal::Claims)),
        (json!({ "iat": [] }), Err(TokenRefusal::Claims)),
        (json!({ "iat": null }), Ok(())),
    ] {
        assert_eq!(check(changes.clone()).map(|_| ()), expected, "{changes}");
    }
    let strict = TokenRules { skew: 0, ..rules() };
    assert!(check_with(&strict, json!({ "exp": NOW })).is_ok());
    assert_eq!(check_with(&strict, json!({ "exp": NOW - 1 })), Err(TokenRefusal::Expired));
    let young = TokenRules { max_age: Some(100), ..rules() };
    assert!(check_with(&young, json!({ "iat": NOW - 160 })).is_ok());
    assert_eq!(check_with(&young, json!({ "iat": NOW - 161 })), Err(TokenRefusal::Expired));
    assert_eq!(check_with(&young, json!({ "iat": null })), Err(TokenRefusal::Claims));
}

#[test]
fn other_kinds_of_tokens_are_refused() {
    let plain = TokenRules { takes_plain_jwt: true, ..rules() };
    for changes in [
        json!({ "nonce": "n" }),
        json!({ "at_hash": "h" }),
        json!({ "c_hash": "h" }),
        json!({ "s_hash": "h" }),
        json!({ "events": { "http://schemas.openid.net/event/backchannel-logout": {} } }),
        json!({ "typ": "ID" }),
        json!({ "typ": "Refresh" }),
        json!({ "typ": "Offline" }),
        json!({ "typ": "Logout" }),
    ] {
        assert_eq!(check_with(&plain, changes.clone()), Err(TokenRefusal::Typ), "{changes}");
        assert!(check(changes).is_ok(), "the header says it");
    }
    assert!(check_with(&plain, json!({ "typ": "Bearer" })).is_ok());
}

#[test]
fn persons_and_programs_are_told_apart() {
    let caller = |changes| check(changes).map(|it| (it.subject, it.client, it.is_program));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(caller(json!({ "sub": null })), Ok((None, text("editor"), true)));
    assert_eq!(caller(json!({ "sub": "editor" })), Ok((text("editor"), text("editor"), true)));
    assert_eq!(caller(json!({ "idtyp": "app" })), Ok((text("alice"), text("editor"), true)));
    assert_eq!(caller(json!({ "client_id": null })), Ok((text("alice"), None, false)));
    assert_eq!(
        caller(json!({ "client_id": null, "azp": "a", "cid": "c" })),
        Ok((text("alice"), text("a"), false))
    );
    assert_eq!(
        caller(json!({ "client_id": null, "cid": "c" })),
        Ok((text("alice"), text("c"), false))
    );
    for changes in [
        json!({ "sub": null, "client_id": null }),
        json!({ "sub": "" }),
        json!({ "sub": 7 }),
        json!({ "sub": "a\nb" }),
        json!({ "sub": "a\u{85}b" }),
        json!({ "sub": "x".repeat(513) }),
        json!({ "client_id": ["a"] }),
        json!({ "client_id": "" }),
    ] {
        assert_eq!(caller(changes.clone()), Err(TokenRefusal::Claims), "{changes}");
    }
    assert!(caller(json!({ "sub": "x".repeat(512) })).is_ok());
}

#[test]
fn a_configured_claim_replaces_the_subject_of_persons() {
    let rules = TokenRules { subject_claim: path("oid"), ..rules() };
    let subject = |changes| check_with(&rules, changes).map(|it| it.subject);
    assert_eq!(subject(json!({ "oid": "o" })), Ok(Some("o".to_owned())));
    // Otherwise all persons of one client would be one principal.
    assert_eq!(subject(json!({})), Err(TokenRefusal::Claims));
    assert_eq!(subject(json!({ "oid": ["o"] })), Err(TokenRefusal::Claims));
    assert_eq!(subject(json!({ "sub": null })), Ok(None));
    assert_eq!(subject(json!({ "sub": "editor" })), Ok(Some("editor".to_owned())));
}

#[test]
fn only_listed_clients_are_taken() {
    let rules = TokenRules { clients: Some(vec!["editor".to_owned()]), ..rules() };
    assert!(check_with(&rules, json!({})).is_ok());
    for changes in [json!({ "client_id": "other" }), json!({ "client_id": null })] {
        assert_eq!(check_with(&rules, changes), Err(TokenRefusal::Claims));
    }
}

#[test]
fn scopes_and_roles_come_from_their_claims() {
    let rules = TokenRules {
        scopes_claim: path("x.scopes"),
        roles_claim: path("realm_access.roles"),
        ..rules()
    };
    let read = |changes| {
        let token = check_with(&rules, changes).unwrap();
        (token.scopes.to_parameter().unwrap_or_default(), token.roles.join(","))
    };
    let all = json!({ "scope": "a b", "scp": ["c", "a"], "x": { "scopes": "d" }, "realm_access": { "roles": ["r", "s", "r"] } });
    assert_eq!(read(all), ("a b c d".to_owned(), "r,s".to_owned()));
    assert_eq!(
        read(json!({ "scp": "a b", "realm_access": { "roles": "r s" } })),
        ("a b".to_owned(), "r,s".to_owned())
    );
    let wrong = json!({ "scope": 7, "scp": ["a", 7], "x": { "scopes": {} }, "realm_access": { "roles": ["r", 7] } });
    assert_eq!(read(wrong), (String::new(), String::new()));
    let odd = json!({ "realm_access": { "roles": ["", "a\nb", "x".repeat(257), "ok"] } });
    assert_eq!(read(odd).1, "ok");
}

#[test]
fn an_unknown_binding_is_refused() {
    assert_eq!(check(json!({ "cnf": { "kid": "x" } })), Err(TokenRefusal::Binding));
}
