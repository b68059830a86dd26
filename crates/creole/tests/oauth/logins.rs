//! When a person is asked, and when a stored login is used instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::BoxFuture;
use creole::client::credentials::Credentials as _;
use creole::client::oauth::{
    LoginKey, LoginMethod, LoginPage, LoginPrompt, LoginStore, LogoutOutcome, OAuthCredentials,
    OAuthError, OAuthOptions, ProgramGrant, RevocationOptions, Scopes, SecretText, log_out,
};

use super::authorization_server::AuthorizationServer;
use super::support::{
    Asking, Person, asking, change_login, fetch, missing_scope, options, refusal, stored, token,
};

#[tokio::test]
async fn a_login_is_made_after_a_refusal_and_then_stored() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<Person>::default();
    let credentials = asking(&server, folder.path(), &person);
    assert_eq!(fetch(&credentials, None).await, Ok(None));
    assert_eq!(server.count("/.well-known/oauth-protected-resource/mcp"), 0);
    assert_eq!(fetch(&credentials, refusal(None)).await, Ok(token(1)));
    assert!(credentials.has_logged_in());

    let later = asking(&server, folder.path(), &person);
    assert_eq!(fetch(&later, None).await, Ok(token(1)));
    assert!(!later.has_logged_in());
    assert_eq!((person.asked(), server.count("/register")), (1, 1));

    // The registration is used for the next login, too.
    let other = stored(&server, folder.path());
    change_login(&other, folder.path(), |login| login.refresh_token = None).await;
    assert_eq!(fetch(&later, refusal(token(1))).await, Ok(token(2)));
    assert_eq!((person.asked(), server.count("/register")), (2, 1));
    let text = format!("{credentials:?} {:?}", credentials.login());
    assert!(!text.contains("canary"), "{text}");
}

#[tokio::test]
async fn several_processes_ask_the_person_once() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<Person>::default();
    let all: Vec<_> = (0..4).map(|_| asking(&server, folder.path(), &person)).collect();
    let mut waiting = tokio::task::JoinSet::new();
    for credentials in all {
        waiting.spawn(async move { fetch(&credentials, refusal(None)).await });
    }
    assert_eq!(waiting.join_all().await, vec![Ok(token(1)); 4]);
    assert_eq!(person.asked(), 1);
}

#[tokio::test]
async fn a_process_without_a_person_uses_the_login_of_another() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let gateway = stored(&server, folder.path());
    assert_eq!(fetch(&gateway, None).await, Ok(None));
    let expected = format!("`site` requires a login; run: creole login {}", server.url());
    assert_eq!(fetch(&gateway, refusal(None)).await, Err(expected.clone()));
    let person = Arc::<Person>::default();
    fetch(&asking(&server, folder.path(), &person), refusal(None)).await.unwrap();
    assert_eq!(fetch(&gateway, refusal(None)).await, Ok(token(1)));

    // After a logout the gateway does not bring the login back.
    let store = LoginStore::new(folder.path().join("logins"));
    let outcome = log_out(&store, gateway.key(), Some(&RevocationOptions::default())).await;
    assert!(matches!(outcome, Ok(LogoutOutcome::Done { is_revoked: true })), "{outcome:?}");
    assert_eq!(server.count("/revoke"), 2);
    assert!(fetch(&gateway, refusal(token(1))).await.is_err());
    assert_eq!((server.count("refresh_token"), store.all().unwrap().len()), (0, 0));
    let outcome = log_out(&store, gateway.key(), Some(&RevocationOptions::default())).await;
    assert!(matches!(outcome, Ok(LogoutOutcome::NotLoggedIn)), "{outcome:?}");
}

#[tokio::test]
async fn a_logout_deletes_the_login_even_if_the_server_is_gone() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let credentials = asking(&server, folder.path(), &Arc::default());
    fetch(&credentials, refusal(None)).await.unwrap();
    let store = LoginStore::new(folder.path().join("logins"));
    let key = LoginKey::of(&store.all().unwrap()[0]);
    assert_eq!(key, *credentials.key());
    drop(server);
    let outcome = log_out(&store, &key, Some(&RevocationOptions::default())).await;
    assert!(matches!(outcome, Ok(LogoutOutcome::NotRevoked(_))), "{outcome:?}");
    assert!(store.read(&key).unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_refuses_every_token_does_not_ask_the_person_for_ever() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<Person>::default();
    let credentials = asking(&server, folder.path(), &person);
    let mut current = None;
    let failed = loop {
        match fetch(&credentials, refusal(current)).await {
            Ok(next) => current = next,
            Err(detail) => break detail,
        }
    };
    assert!(failed.starts_with("`site` refuses the tokens of several logins"), "{failed}");
    // New tokens are not refreshed.
    assert_eq!((person.asked(), server.count("refresh_token")), (5, 0));
}

#[tokio::test]
async fn further_scopes_are_added_to_the_old_ones_and_not_asked_for_without_end() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<Person>::default();
    let mut options =
        options(LoginMethod::Person(Arc::new(Asking(Arc::clone(&person)))), folder.path());
    options.settings.scopes = Scopes::parse("read");
    let credentials = OAuthCredentials::new("site", &server.url(), options).unwrap();
    let first = fetch(&credentials, refusal(None)).await.unwrap();
    let second = fetch(&credentials, missing_scope(first, "write")).await.unwrap();
    assert_eq!(credentials.login().unwrap().requested_scopes, Scopes::parse("read write"));
    let third = fetch(&credentials, missing_scope(second, "write")).await.unwrap();
    let failed = fetch(&credentials, missing_scope(third, "write")).await.unwrap_err();
    assert_eq!(failed, "`site` requires the scopes `write`, which the login did not get");
    assert_eq!(person.asked(), 3);
}

#[tokio::test]
async fn a_stored_login_without_a_wanted_scope_is_not_used() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<Person>::default();
    fetch(&asking(&server, folder.path(), &person), refusal(None)).await.unwrap();
    let method = LoginMethod::Person(Arc::new(Asking(Arc::clone(&person))));
    let mut options = options(method, folder.path());
    options.settings.scopes = Scopes::parse("admin");
    let credentials = OAuthCredentials::new("site", &server.url(), options).unwrap();
    assert_eq!(fetch(&credentials, None).await, Ok(None));
    assert_eq!(fetch(&credentials, refusal(None)).await, Ok(token(2)));
    assert_eq!(person.asked(), 2);
}

#[tokio::test]
async fn a_program_logs_in_again_before_its_token_expires() {
    let server = AuthorizationServer::start().await;
    let grant = Arc::new(ProgramGrant::ClientCredentials);
    let mut options = OAuthOptions::new(LoginMethod::Program(grant));
    options.settings.client_id = Some("program".to_owned());
    options.settings.client_secret = Some(SecretText::new("secret-canary"));
    let credentials = OAuthCredentials::new("site", &server.url(), options).unwrap();
    server.set_lifetime(0);
    assert_eq!(fetch(&credentials, None).await, Ok(None));
    assert_eq!(fetch(&credentials, refusal(None)).await, Ok(token(1)));
    server.set_lifetime(3_600);
    assert_eq!(fetch(&credentials, None).await, Ok(token(2)));
    assert_eq!(fetch(&credentials, None).await, Ok(token(2)));
    assert_eq!(server.count("client_credentials"), 2);
}

#[tokio::test]
async fn a_gateway_tells_its_callers_no_reason() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let mut options = options(LoginMethod::Person(Arc::new(Asking(Arc::default()))), folder.path());
    options.settings.issuer = Some("https://id.internal.example".to_owned());
    let open = OAuthCredentials::new("site", &server.url(), options.clone()).unwrap();
    let detail = fetch(&open, refusal(None)).await.unwrap_err();
    assert!(detail.contains("https://id.internal.example"), "{detail}");
    options.hides_reasons = true;
    let closed = OAuthCredentials::new("site", &server.url(), options).unwrap();
    let detail = fetch(&closed, refusal(None)).await.unwrap_err();
    assert_eq!(detail, "the login to `site` failed; the log has the reason");
}

#[tokio::test]
async fn documents_are_read_again_only_after_a_token_was_refused() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let credentials = asking(&server, folder.path(), &Arc::default());
    let documents = || server.count("/.well-known/oauth-protected-resource/mcp");
    let first = fetch(&credentials, refusal(None)).await.unwrap();
    assert_eq!(documents(), 1);
    let second = fetch(&credentials, missing_scope(first, "write")).await.unwrap();
    assert_eq!(documents(), 1);
    fetch(&credentials, refusal(second)).await.unwrap();
    assert_eq!(documents(), 2);
}

#[tokio::test]
async fn spellings_of_one_address_share_a_login() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<Person>::default();
    let credentials = |url: &str| {
        let method = LoginMethod::Person(Arc::new(Asking(Arc::clone(&person))));
        OAuthCredentials::new("site", url, options(method, folder.path())).unwrap()
    };
    let bare = credentials(&server.origin);
    assert_eq!(fetch(&bare, refusal(None)).await, Ok(token(1)));
    let slash = credentials(&format!("{}/", server.origin));
    assert_eq!(fetch(&slash, None).await, Ok(token(1)));
    assert_eq!(bare.key(), slash.key());
    // What the server published is sent as it was written.
    let records = server.records.lock().unwrap();
    let resource = format!("resource=http%3A%2F%2F127.0.0.1%3A{}&", port(&server.origin));
    assert!(records.forms[0].contains(&resource), "{}", records.forms[0]);
}

fn port(origin: &str) -> &str {
    origin.rsplit_once(':').unwrap().1
}

/// A person who cannot be asked before the test says so.
#[derive(Default)]
struct LatePerson {
    can_ask: AtomicBool,
}

impl LoginPrompt for LatePerson {
    fn open(
        &self,
        registered: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>> {
        match self.can_ask.load(Ordering::Relaxed) {
            true => Asking(Arc::default()).open(registered),
            false => Box::pin(async { Err(OAuthError::Prompt { reason: "not now".to_owned() }) }),
        }
    }

    fn can_ask_now(&self) -> bool {
        self.can_ask.load(Ordering::Relaxed)
    }
}

#[tokio::test]
async fn a_person_who_could_not_be_asked_is_asked_as_soon_as_possible() {
    let (server, folder) = (AuthorizationServer::start().await, tempfile::tempdir().unwrap());
    let person = Arc::<LatePerson>::default();
    let method = LoginMethod::Person(Arc::clone(&person) as Arc<dyn LoginPrompt>);
    let credentials =
        OAuthCredentials::new("site", &server.url(), options(method, folder.path())).unwrap();
    assert!(!credentials.can_retry_now());
    assert!(fetch(&credentials, refusal(None)).await.is_err());
    assert!(!credentials.can_retry_now());
    person.can_ask.store(true, Ordering::Relaxed);
    assert!(credentials.can_retry_now());
    assert_eq!(fetch(&credentials, refusal(None)).await, Ok(token(1)));
    assert!(!credentials.can_retry_now());
    // The documents of the first attempt were used.
    assert_eq!(server.count("/.well-known/oauth-protected-resource/mcp"), 1);
}
