//! Questions about opaque tokens, and their answers.

use serde_json::{Value, json};

use super::{IntrospectionAnswer, IntrospectionEndpoint};
use crate::error::OAuthError;
use crate::http::exchange::{Reach, Response};
use crate::resource::access_token::{AcceptedAudience, TokenRules};
use crate::resource::refusal::TokenRefusal;
use crate::resource::testing::{ISSUER, RESOURCE};
use crate::secret::SecretText;
use crate::testing::{Servers, response, run};
use crate::tokens::client::{ClientAuthMethod, ClientSource, OAuthClient};
use crate::web_url::WebUrl;

const URL: &str = "https://id.example.com/introspect";

fn endpoint(method: ClientAuthMethod) -> IntrospectionEndpoint {
    let client = OAuthClient {
        id: "creole".to_owned(),
        secret: Some(SecretText::new("s3cret")),
        method,
        source: ClientSource::Configured,
        redirect_uri: None,
        expires_at: None,
    };
    let url = WebUrl::parse(URL).unwrap();
    IntrospectionEndpoint { url, reach: Reach::Public, client, assertion: None }
}

fn ask(answer: Response, is_implied: bool) -> Result<Result<(), TokenRefusal>, OAuthError> {
    let servers = Servers::new(move |_| answer.clone());
    let audiences = [RESOURCE.to_owned()];
    let audience = match is_implied {
        true => AcceptedAudience::OneOfOrImplied(&audiences),
        false => AcceptedAudience::OneOf(&audiences),
    };
    let rules = TokenRules::new(ISSUER);
    let asked = endpoint(ClientAuthMethod::Basic);
    let answer = run(asked.ask(&servers, "opaque", &rules, audience))?;
    Ok(match answer {
        IntrospectionAnswer::Active(_) => Ok(()),
        IntrospectionAnswer::Refused(refusal) => Err(refusal),
    })
}

fn active(changes: Value) -> Response {
    // The clock of `Servers` stands at 1,000,000.
    let mut answer = json!({ "active": true, "aud": RESOURCE, "sub": "alice", "client_id": "c", "exp": 1_000_300 });
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => answer.as_object_mut().unwrap().remove(name),
            value => answer.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    response(200, answer.to_string())
}

#[test]
fn the_question_has_the_token_and_the_clients_authentication() {
    for method in [ClientAuthMethod::Basic, ClientAuthMethod::Post] {
        let servers = Servers::new(|_| response(200, r#"{"active":false}"#));
        let audiences = [RESOURCE.to_owned()];
        let asked = endpoint(method);
        let rules = TokenRules::new(ISSUER);
        let answer =
            run(asked.ask(&servers, "opaque", &rules, AcceptedAudience::OneOf(&audiences)));
        assert_eq!(answer.unwrap(), IntrospectionAnswer::Refused(TokenRefusal::Inactive));
        let form = servers.forms(URL).remove(0);
        let names: Vec<_> =
            form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(names[..2], [("token", "opaque"), ("token_type_hint", "access_token")]);
        assert_eq!(names.contains(&("client_secret", "s3cret")), method == ClientAuthMethod::Post);
        let has_header =
            servers.requests.lock().unwrap()[0].headers.iter().any(|it| it.0 == "authorization");
        assert_eq!(has_header, method == ClientAuthMethod::Basic);
    }
}

#[test]
fn only_the_literal_true_is_active() {
    assert_eq!(ask(active(json!({})), false).unwrap(), Ok(()));
    for answer in [
        json!({ "active": "true" }),
        json!({ "active": 1 }),
        json!({ "active": null }),
        json!({ "active": false }),
    ] {
        assert_eq!(
            ask(active(answer.clone()), false).unwrap(),
            Err(TokenRefusal::Inactive),
            "{answer}"
        );
    }
    // RFC 7662 demands nothing but `active`.
    assert_eq!(
        ask(response(200, "{\"active\":false}"), false).unwrap(),
        Err(TokenRefusal::Inactive)
    );
}

#[test]
fn the_rules_of_claims_hold() {
    for (changes, expected) in [
        (json!({ "iss": ISSUER }), Ok(())),
        (json!({ "iss": "https://other.example" }), Err(TokenRefusal::Issuer)),
        (json!({ "iss": 7 }), Err(TokenRefusal::Issuer)),
        (json!({ "aud": "x" }), Err(TokenRefusal::Audience)),
        (json!({ "aud": null }), Err(TokenRefusal::Audience)),
        (json!({ "exp": 999_939 }), Err(TokenRefusal::Expired)),
        (json!({ "exp": null }), Err(TokenRefusal::Claims)),
        (json!({ "cnf": { "x": "y" } }), Err(TokenRefusal::Binding)),
        (json!({ "sub": null }), Ok(())),
        (json!({ "sub": null, "client_id": null }), Err(TokenRefusal::Claims)),
    ] {
        assert_eq!(ask(active(changes.clone()), false).unwrap(), expected, "{changes}");
    }
    assert_eq!(ask(active(json!({ "aud": null })), true).unwrap(), Ok(()));
    assert_eq!(ask(active(json!({ "aud": "x" })), true).unwrap(), Err(TokenRefusal::Audience));
}

#[test]
fn what_is_no_answer_refuses_nothing() {
    for (status, body) in [
        (500, ""),
        (200, "<html>"),
        (200, "[]"),
        (200, r#"{"active":true,"active":true}"#),
        (302, ""),
        (404, r#"{"active":false}"#),
    ] {
        let error = ask(response(status, body), false).unwrap_err();
        assert!(matches!(error, OAuthError::Unreachable { .. }), "{status} {body}: {error}");
    }
    for status in [200, 400, 401] {
        let error =
            ask(response(status, r#"{"error":"unsupported_token_type"}"#), false).unwrap_err();
        assert!(matches!(error, OAuthError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("unsupported_token_type"), "{error}");
    }
}
