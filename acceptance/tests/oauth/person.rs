//! A person logs in at `oidc-provider`.

use std::sync::Arc;
use std::time::Duration;

use creole::client::oauth::{
    DpopMode, LoginMethod, LogoutOutcome, OAuthCredentials, OAuthOptions, RevocationOptions,
    Scopes, TokenType, log_out,
};
use creole_acceptance::oauth::{AutomaticDevice, AutomaticPerson};
use serde_json::json;

use crate::{call, connect, key, person, provider, reason, store, stored, whoami};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_once_and_every_later_connection_uses_the_stored_login() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/mcp"));
    let alice = AutomaticPerson::default();
    let credentials = person(&url, &alice, Some(&store));
    let client = connect(&url, &credentials).await.unwrap();
    let me = whoami(&client).await;
    assert_eq!((&me["sub"], &me["scopes"]), (&json!("alice"), &json!(["mcp"])));
    assert!(credentials.has_logged_in());
    let login = store.read(&key(&url)).unwrap().unwrap();
    assert_eq!((&*login.issuer, &*login.resource), (&*provider.issuer(), &*url));
    assert_eq!(me["client"], json!(login.client.id));
    assert!(login.refresh_token.is_some());
    // The registration and the authorization happened once, with PKCE and the resource.
    assert_eq!((alice.logins(), provider.visits("/reg")), (1, 1));
    let opened = &alice.visited()[0];
    assert!(opened.contains("code_challenge_method=S256"), "{opened}");
    assert!(opened.contains("&resource=http%3A%2F%2F127.0.0.1"), "{opened}");

    let later = stored(&url, &store);
    let client = connect(&url, &later).await.unwrap();
    assert_eq!(whoami(&client).await["sub"], "alice");
    assert!(!later.has_logged_in());
    assert_eq!(provider.token_requests("authorization_code", 200), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_protection_needs_no_login() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/open"));
    let alice = AutomaticPerson::default();
    let credentials = person(&url, &alice, Some(&store));
    connect(&url, &credentials).await.unwrap();
    assert!(!credentials.has_logged_in() && credentials.login().is_none());
    assert_eq!((alice.logins(), provider.requests().len()), (0, 0));
    assert!(store.all().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_person_is_asked_where_none_is_there() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/mcp"));
    let fault = connect(&url, &stored(&url, &store)).await.map(drop).unwrap_err();
    assert_eq!(fault.detail, format!("`protected` requires a login; run: creole login {url}"));
    assert_eq!(reason(&fault), "login_required");
    assert_eq!(provider.requests().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_declines_is_not_asked_again_by_the_same_call() {
    let Some(provider) = provider(&[]) else { return };
    let (url, alice) = (provider.server("/mcp"), AutomaticPerson::default());
    let mut options = OAuthOptions::new(LoginMethod::Person(Arc::new(alice.clone())));
    options.settings.scopes = Scopes::parse("decline");
    let credentials = OAuthCredentials::new("protected", &url, options).unwrap();
    let fault = connect(&url, &credentials).await.map(drop).unwrap_err();
    let declined = format!("login declined at {}", provider.issuer());
    assert!(fault.detail.ends_with(&declined), "{}", fault.detail);
    assert_eq!(alice.logins(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn further_scopes_are_asked_for_together_and_the_tool_runs_once() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/mcp"));
    let alice = AutomaticPerson::default();
    let client = connect(&url, &person(&url, &alice, Some(&store))).await.unwrap();
    assert_eq!(call(&client, "write").await.unwrap(), "written 1");
    assert_eq!((alice.logins(), provider.writes()), (2, 1));
    let scopes: Vec<_> =
        provider.requests().into_iter().filter(|it| it["path"] == "/auth").collect();
    assert_eq!(scopes[0]["scope"], "mcp offline_access");
    let second = scopes[1]["scope"].as_str().unwrap();
    let wanted = ["mcp", "mcp:write", "offline_access"];
    assert!(wanted.iter().all(|scope| second.split(' ').any(|it| it == *scope)), "{second}");
    // The new login has both scopes: nothing is asked any more.
    assert_eq!(call(&client, "write").await.unwrap(), "written 2");
    assert_eq!((alice.logins(), provider.visits("/reg")), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_is_never_granted_ends_after_three_logins() {
    let Some(provider) = provider(&[]) else { return };
    let (url, alice) = (provider.server("/never"), AutomaticPerson::default());
    let fault = connect(&url, &person(&url, &alice, None)).await.map(drop).unwrap_err();
    assert!(fault.detail.contains("mcp:never"), "{}", fault.detail);
    assert_eq!(reason(&fault), "insufficient_scope");
    assert!((1..=3).contains(&alice.logins()), "{}", alice.logins());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scope_beyond_the_maximum_opens_nothing() {
    let Some(provider) = provider(&[]) else { return };
    let (url, alice) = (provider.server("/mcp"), AutomaticPerson::default());
    let mut options = OAuthOptions::new(LoginMethod::Person(Arc::new(alice.clone())));
    options.settings.max_scopes = Some(Scopes::parse("mcp offline_access"));
    let credentials = OAuthCredentials::new("protected", &url, options).unwrap();
    let client = connect(&url, &credentials).await.unwrap();
    let fault = call(&client, "write").await.unwrap_err();
    assert!(fault.detail.contains("`mcp:write`, which is not in `max_scopes`"), "{}", fault.detail);
    assert_eq!((alice.logins(), provider.writes()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_bound_to_a_key_with_and_without_nonces() {
    for options in [&[][..], &["--nonces"]] {
        let Some(provider) = provider(options) else { return };
        let ((_folder, store), url) = (store(), provider.server("/dpop"));
        let alice = AutomaticPerson::default();
        let client = connect(&url, &person(&url, &alice, Some(&store))).await.unwrap();
        let me = whoami(&client).await;
        assert!(me["cnf"]["jkt"].is_string(), "{me}");
        let login = store.read(&key(&url)).unwrap().unwrap();
        assert_eq!(login.token_type, TokenType::Dpop);
        // Another process has the key from the store, and refreshes with it.
        crate::expire(&store, &url).await;
        let client = connect(&url, &stored(&url, &store)).await.unwrap();
        assert_eq!(whoami(&client).await["cnf"], me["cnf"]);
        assert_eq!(provider.token_requests("refresh_token", 200), 1);
        assert_eq!(alice.logins(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bound_tokens_can_be_demanded_and_refused() {
    let Some(provider) = provider(&[]) else { return };
    for (mode, path, works) in [
        (DpopMode::Off, "/mcp", true),
        (DpopMode::Off, "/dpop", false),
        (DpopMode::Require, "/dpop", true),
    ] {
        let (url, alice) = (provider.server(path), AutomaticPerson::default());
        let mut options = OAuthOptions::new(LoginMethod::Person(Arc::new(alice.clone())));
        options.settings.dpop = mode;
        let credentials = OAuthCredentials::new("protected", &url, options).unwrap();
        let connected = connect(&url, &credentials).await.map(drop);
        assert_eq!(connected.is_ok(), works, "{mode:?} {path}: {connected:?}");
        assert!((1..=5).contains(&alice.logins()), "{}", alice.logins());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_at_another_device() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/mcp"));
    let mut options = OAuthOptions::new(LoginMethod::Device(Arc::new(AutomaticDevice)));
    options.store = Some(store.clone());
    options.timeout = Duration::from_secs(60);
    let credentials = OAuthCredentials::new("protected", &url, options).unwrap();
    let client = connect(&url, &credentials).await.unwrap();
    assert_eq!(whoami(&client).await["sub"], "alice");
    let device = "urn:ietf:params:oauth:grant-type:device_code";
    assert_eq!(provider.token_requests(device, 200), 1);
    assert!(store.read(&key(&url)).unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_revokes_the_login_and_deletes_it() {
    let Some(provider) = provider(&[]) else { return };
    let ((_folder, store), url) = (store(), provider.server("/opaque"));
    let credentials = person(&url, &AutomaticPerson::default(), Some(&store));
    let client = connect(&url, &credentials).await.unwrap();
    assert_eq!(whoami(&client).await["sub"], "alice");
    let outcome = log_out(&store, &key(&url), Some(&RevocationOptions::default())).await.unwrap();
    assert!(matches!(outcome, LogoutOutcome::Done { is_revoked: true }), "{outcome:?}");
    assert!(store.read(&key(&url)).unwrap().is_none());
    let outcome = log_out(&store, &key(&url), Some(&RevocationOptions::default())).await.unwrap();
    assert!(matches!(outcome, LogoutOutcome::NotLoggedIn), "{outcome:?}");
    assert!(connect(&url, &stored(&url, &store)).await.is_err());
}
