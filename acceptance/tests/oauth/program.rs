//! Programs log in at `oidc-provider`, without a person.

use std::sync::Arc;

use creole::client::oauth::{
    LoginMethod, LoginSettings, OAuthCredentials, OAuthOptions, ProgramGrant, SecretText,
    SigningKey,
};
use creole_acceptance::peers::idp::IdentityProvider;
use serde_json::json;

use crate::{connect, provider, reason, store, whoami};

/// The credentials of a program that uses its own credentials.
fn program(url: &str, settings: LoginSettings) -> OAuthCredentials {
    let grant = Arc::new(ProgramGrant::ClientCredentials);
    let mut options = OAuthOptions::new(LoginMethod::Program(grant));
    options.settings = settings;
    OAuthCredentials::new("protected", url, options).unwrap()
}

fn with_secret(provider: &IdentityProvider) -> LoginSettings {
    let mut settings = LoginSettings::default();
    settings.client_id = Some(provider.told("/service/id"));
    settings.client_secret = Some(SecretText::new(provider.told("/service/secret")));
    settings
}

fn with_key(provider: &IdentityProvider) -> LoginSettings {
    let mut settings = LoginSettings::default();
    settings.client_id = Some(provider.told("/robot/id"));
    settings.private_key = SigningKey::from_pem(&provider.told("/robot/key"), None).ok();
    assert!(settings.private_key.is_some());
    settings
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_logs_in_with_a_secret_or_with_a_key() {
    let Some(provider) = provider(&[]) else { return };
    for path in ["/mcp", "/opaque"] {
        for settings in [with_secret(&provider), with_key(&provider)] {
            let (url, id) = (provider.server(path), settings.client_id.clone());
            let client = connect(&url, &program(&url, settings)).await.unwrap();
            let me = whoami(&client).await;
            assert_eq!((&me["client"], &me["scopes"]), (&json!(id), &json!(["mcp"])));
        }
    }
    assert_eq!(provider.token_requests("client_credentials", 200), 4);
    assert_eq!((provider.visits("/reg"), provider.visits("/auth")), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_token_is_bound_to_a_key_where_the_server_wants_it() {
    let Some(provider) = provider(&["--nonces"]) else { return };
    let url = provider.server("/dpop");
    for settings in [with_secret(&provider), with_key(&provider)] {
        let client = connect(&url, &program(&url, settings)).await.unwrap();
        let me = whoami(&client).await;
        assert!(me["cnf"]["jkt"].is_string(), "{me}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_programs_token_is_requested_anew_and_never_stored() {
    let Some(provider) = provider(&[]) else { return };
    let ((folder, store), url) = (store(), provider.server("/mcp"));
    let grant = Arc::new(ProgramGrant::ClientCredentials);
    let mut options = OAuthOptions::new(LoginMethod::Program(grant));
    (options.settings, options.store) = (with_secret(&provider), Some(store.clone()));
    for requests in 1..=2 {
        let credentials = OAuthCredentials::new("protected", &url, options.clone()).unwrap();
        connect(&url, &credentials).await.unwrap();
        assert_eq!(provider.token_requests("client_credentials", 200), requests);
    }
    assert!(store.all().unwrap().is_empty());
    assert!(!folder.path().join("logins").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_secret_is_refused_without_being_told() {
    let Some(provider) = provider(&[]) else { return };
    let mut settings = with_secret(&provider);
    settings.client_secret = Some(SecretText::new("canary-wrong-secret"));
    let url = provider.server("/mcp");
    let fault = connect(&url, &program(&url, settings)).await.map(drop).unwrap_err();
    assert_eq!(reason(&fault), "credentials");
    assert!(fault.detail.contains("invalid_client"), "{}", fault.detail);
    assert!(!format!("{fault:?}").contains("canary"), "{fault:?}");
    assert_eq!(provider.token_requests("client_credentials", 200), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_not_the_configured_one_sees_nothing() {
    let Some(provider) = provider(&[]) else { return };
    let mut settings = with_secret(&provider);
    settings.issuer = Some("https://id.example.com".to_owned());
    let url = provider.server("/mcp");
    let fault = connect(&url, &program(&url, settings)).await.map(drop).unwrap_err();
    let issuer = provider.issuer();
    assert!(
        fault.detail.contains("configured for the issuer https://id.example.com")
            && fault.detail.contains(&issuer),
        "{}",
        fault.detail
    );
    assert_eq!(provider.requests().len(), 0);
}
