//! Where the documents of an issuer are looked for, and which addresses may be asked.

use serde_json::{Value, json};

use super::{IssuerMetadata, configured_reach, fetch_keys, fetch_metadata, named_reach};
use crate::error::OAuthError;
use crate::http::exchange::{Reach, Request, Response};
use crate::resource::testing::{ISSUER, TestKey};
use crate::testing::{Servers, not_found, response, run};
use crate::web_url::WebUrl;

fn url(text: &str) -> WebUrl {
    WebUrl::parse(text).unwrap()
}

fn metadata(issuer: &str) -> Response {
    let document = json!({
        "issuer": issuer,
        "jwks_uri": "https://id.example.com/keys",
        "introspection_endpoint": "https://id.example.com/introspect",
    });
    response(200, document.to_string())
}

fn fetch(
    issuer: &str,
    handler: impl Fn(&Request) -> Response + Send + Sync + 'static,
) -> (Result<IssuerMetadata, OAuthError>, Vec<String>) {
    let servers = Servers::new(handler);
    let found = run(fetch_metadata(&servers, issuer, false));
    (found, servers.urls())
}

#[test]
fn the_three_forms_are_tried_in_order() {
    let forms = [
        "https://id.example.com/.well-known/oauth-authorization-server/realms/corp",
        "https://id.example.com/.well-known/openid-configuration/realms/corp",
        "https://id.example.com/realms/corp/.well-known/openid-configuration",
    ];
    for count in 1..=3 {
        let (found, urls) =
            fetch(ISSUER, move |request| match request.url.as_str() == forms[count - 1] {
                true => metadata(ISSUER),
                false => not_found(),
            });
        assert_eq!(found.unwrap().keys, Some(url("https://id.example.com/keys")));
        assert_eq!(urls, forms[..count]);
    }
    let (found, urls) = fetch(ISSUER, |_| response(200, "<html>"));
    assert!(matches!(found, Err(OAuthError::NoMetadata { .. })), "{found:?}");
    assert_eq!(urls.len(), 3);
    let (found, urls) = fetch(ISSUER, |_| response(500, ""));
    assert!(matches!(found, Err(OAuthError::Unreachable { .. })), "{found:?}");
    assert_eq!(urls.len(), 1);
}

#[test]
fn a_slash_at_the_end_belongs_to_the_issuer() {
    let issuer = "https://acme.eu.auth0.com/";
    let (found, urls) = fetch(issuer, move |_| metadata(issuer));
    assert!(found.is_ok());
    assert_eq!(urls, ["https://acme.eu.auth0.com/.well-known/oauth-authorization-server"]);
    for other in
        [format!("{ISSUER}/"), "https://ID.example.com/realms/corp".to_owned(), String::new()]
    {
        let (found, _) = fetch(ISSUER, move |_| metadata(&other));
        assert!(matches!(found, Err(OAuthError::IssuerMismatch { .. })), "{found:?}");
    }
}

#[test]
fn a_document_cannot_name_other_addresses() {
    for keys in
        ["http://id.example.com/keys", "ftp://id.example.com/keys", "https://u:p@id.example.com/"]
    {
        let document = json!({ "issuer": ISSUER, "jwks_uri": keys }).to_string();
        let (found, _) = fetch(ISSUER, move |_| response(200, document.clone()));
        assert!(found.is_err(), "{keys}");
    }
}

#[test]
fn names_must_be_public_and_written_addresses_are_the_operators_choice() {
    let reach = |text: &str| configured_reach(&url(text), false);
    assert_eq!(reach("https://id.example.com"), Reach::Public);
    for text in
        ["https://10.0.0.1", "http://localhost:8080", "http://127.0.0.1:1", "https://[fd00::1]"]
    {
        assert_eq!(reach(text), Reach::Anywhere, "{text}");
    }
    assert_eq!(configured_reach(&url("https://id.example.com"), true), Reach::Anywhere);
    let named = |text: &str, issuer: &str| named_reach(&url(text), &url(issuer), false);
    assert_eq!(named("https://10.0.0.1/keys", "https://10.0.0.1"), Reach::Anywhere);
    assert_eq!(named("https://10.0.0.2/keys", "https://10.0.0.1"), Reach::Public);
    assert_eq!(named("https://169.254.169.254/keys", "https://id.example.com"), Reach::Public);
    assert_eq!(named("http://127.0.0.1:2/keys", "http://127.0.0.1:1"), Reach::Anywhere);
    assert_eq!(
        named_reach(&url("https://a.example"), &url("https://b.example"), true),
        Reach::Anywhere
    );
}

#[test]
fn keys_come_with_their_age() {
    let keys = json!({ "keys": [Value::Object(TestKey::new().jwk())] }).to_string();
    let fetch = |answer: Response| {
        let servers = Servers::new(move |_| answer.clone());
        run(fetch_keys(&servers, &url("https://id.example.com/keys"), Reach::Public))
    };
    let found = fetch(Response { max_age: Some(600), ..response(200, keys.clone()) }).unwrap();
    assert_eq!((found.keys.len(), found.max_age), (1, Some(600)));
    for answer in [
        response(404, keys.clone()),
        response(302, ""),
        response(200, "{\"keys\":[]}"),
        response(200, "<html>"),
    ] {
        assert!(fetch(answer).is_err());
    }
}
