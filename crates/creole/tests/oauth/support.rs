//! Persons who consent, and credentials whose logins are stored in a folder.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use creole::BoxFuture;
use creole::client::credentials::{Authorization, Credentials as _, Refusal};
use creole::client::oauth::{
    AuthorizationRequest, LoginMethod, LoginPage, LoginPrompt, LoginStore, OAuthCredentials,
    OAuthError, OAuthOptions,
};
use creole_test_wait::delay;

use super::authorization_server::AuthorizationServer;

/// A person who consents after a moment.
#[derive(Default)]
pub(super) struct Person {
    asked: AtomicUsize,
    /// How long the person takes besides.
    takes: Duration,
}

impl Person {
    /// A person who takes this long.
    pub(super) fn taking(takes: Duration) -> Self {
        Self { takes, ..Self::default() }
    }

    /// How often the person was asked.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// The browser of a person.
pub(super) struct Asking(pub(super) Arc<Person>);

struct Page;

impl LoginPrompt for Asking {
    fn open(
        &self,
        _: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>> {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        let takes = self.0.takes + Duration::from_millis(50);
        Box::pin(async move {
            delay(takes).await;
            Ok(Box::new(Page) as Box<dyn LoginPage>)
        })
    }
}

impl LoginPage for Page {
    fn redirect_uri(&self) -> &'static str {
        "http://127.0.0.1:40001/callback"
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<String, OAuthError>> {
        let url = request.url();
        let state = url.split(['?', '&']).find_map(|it| it.strip_prefix("state="));
        let query = format!("code=code-canary&state={}", state.unwrap());
        Box::pin(async { Ok(query) })
    }
}

pub(super) fn options(method: LoginMethod, folder: &Path) -> OAuthOptions {
    let mut options = OAuthOptions::new(method);
    options.store = Some(LoginStore::new(folder.join("logins")));
    options
}

/// Credentials that ask a person.
pub(super) fn asking(
    server: &AuthorizationServer,
    folder: &Path,
    person: &Arc<Person>,
) -> OAuthCredentials {
    let method = LoginMethod::Person(Arc::new(Asking(Arc::clone(person))));
    OAuthCredentials::new("site", &server.url(), options(method, folder)).unwrap()
}

/// Credentials that use stored logins only.
pub(super) fn stored(server: &AuthorizationServer, folder: &Path) -> OAuthCredentials {
    OAuthCredentials::new("site", &server.url(), options(LoginMethod::Stored, folder)).unwrap()
}

/// A refusal with status 401 of a request with this token.
pub(super) fn refusal(authorization: Option<Authorization>) -> Option<Refusal> {
    let mut refusal = Refusal::default();
    refusal.authorization = authorization;
    refusal.challenges = vec!["Bearer".to_owned()];
    Some(refusal)
}

/// A refusal with status 403 that demands a scope.
pub(super) fn missing_scope(authorization: Option<Authorization>, scope: &str) -> Option<Refusal> {
    let mut refusal = refusal(authorization).unwrap();
    refusal.needs_scopes = true;
    refusal.challenges = vec![format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"")];
    Some(refusal)
}

/// The number of the token that the credentials give.
pub(super) async fn fetch(
    credentials: &OAuthCredentials,
    refusal: Option<Refusal>,
) -> Result<Option<Authorization>, String> {
    let fetched = credentials.fetch(refusal).await;
    fetched.map_err(|fault| {
        assert!(!fault.detail.contains("canary"), "{}", fault.detail);
        fault.detail
    })
}

/// Changes the stored login.
pub(super) async fn change_login(
    credentials: &OAuthCredentials,
    folder: &Path,
    change: impl FnOnce(&mut creole::client::oauth::Login),
) {
    let store = LoginStore::new(folder.join("logins"));
    let locked = store.lock(credentials.key()).await.unwrap();
    let mut login = locked.read().unwrap().unwrap();
    change(&mut login);
    locked.write(&login).unwrap();
}

/// A token that is expected.
pub(super) fn token(number: usize) -> Option<Authorization> {
    Authorization::bearer(&format!("access-canary-{number}"))
}
