//! A login while a client waits: `creole connect` asks the user of its client.
//!
//! The browser is opened if there is one. A client that can show URLs gets the address too. The first response of the
//! client waits for the login, but not longer than clients do: then it fails, and the login goes on.

mod layer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use creole::BoxFuture;
use creole::client::oauth::{
    AuthorizationRequest, LoginKey, LoginPage, LoginPrompt, LoginStore, OAuthError,
};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};

pub(crate) use self::layer::{LoginLayer, can_ask_later};
use super::activity::LoginWait;
use super::browser;
use super::listener::RedirectListener;
use super::prompt::{listen, openable_url};
use crate::output;
use crate::output::printable;

/// How long the person may take. The client has given up long before.
pub(crate) const PERSON_TIMEOUT: Duration = Duration::from_secs(600);

/// Why a person cannot be asked.
const NO_PERSON: &str = "no person can be asked here";

/// Why a request does not wait for the login of a person.
const ASKED: &str = "the login has not ended yet";

/// How long the server may take to be ready after the login.
const READY_TIMEOUT: Duration = Duration::from_secs(10);

/// How long it may take until the server says why it is not ready after a login that failed.
const REASON_TIMEOUT: Duration = Duration::from_millis(200);

/// The login of the person who uses the client.
#[derive(Debug)]
pub(crate) struct ClientLogin {
    /// The name of the server in messages.
    server: String,
    /// Its address in messages.
    url: String,
    port: Option<u16>,
    has_browser: bool,
    /// The file of the login, which another command may write.
    stored: Option<(LoginStore, LoginKey)>,
    /// Whether the server has been available before.
    was_ready: AtomicBool,
    /// How often no person could be asked.
    refusals: AtomicUsize,
    /// Whether the client has sent a request since the person was asked last. No person is asked because of a connection
    /// that is tried again and again.
    is_wanted: AtomicBool,
    /// Whether another command has stored a login since the last one failed.
    is_stored_meanwhile: AtomicBool,
    /// Whether the client can show an address during a call.
    can_show_urls: AtomicBool,
    /// Whether requests fail while the person is asked: a client of the stateless era gets the address only with the
    /// outcome of its call.
    releases_requests: AtomicBool,
    state: watch::Sender<LoginState>,
}

/// Whether a person is asked now.
#[derive(Clone, Debug, Default)]
enum LoginState {
    #[default]
    Idle,
    Asked(Arc<AskedLogin>),
    /// The person has answered or not.
    Ended {
        at: Instant,
        is_answered: bool,
    },
}

/// A login that a person is asked for.
#[derive(Debug)]
struct AskedLogin {
    /// The address that the browser opens.
    url: String,
    issuer: String,
    /// Whether a call has shown the address.
    is_shown: AtomicBool,
    /// The person declined at the client.
    declined: Notify,
}

impl ClientLogin {
    /// The login to a server. A browser is opened if there is one.
    pub(crate) fn new(
        server: &str,
        url: &str,
        port: Option<u16>,
        has_browser: bool,
        stored: Option<(LoginStore, LoginKey)>,
    ) -> Arc<Self> {
        Arc::new(Self {
            server: server.to_owned(),
            url: url.to_owned(),
            port,
            has_browser,
            stored,
            was_ready: AtomicBool::new(false),
            refusals: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            is_stored_meanwhile: AtomicBool::new(false),
            can_show_urls: AtomicBool::new(false),
            releases_requests: AtomicBool::new(false),
            state: watch::Sender::new(LoginState::Idle),
        })
    }

    /// What the user of the client can do.
    fn advice(&self) -> String {
        format!("run: creole login {}", self.url)
    }

    /// Whether there is a way to ask the person.
    fn can_ask(&self) -> bool {
        self.has_browser || self.can_show_urls.load(Ordering::Relaxed)
    }

    /// Whether the person may be asked now.
    fn check_wanted(&self) -> Result<(), OAuthError> {
        match self.can_ask() && self.is_wanted.swap(false, Ordering::Relaxed) {
            true => Ok(()),
            false => {
                self.refusals.fetch_add(1, Ordering::Relaxed);
                let reason = format!("{NO_PERSON}; {}", self.advice());
                Err(OAuthError::Prompt { reason })
            }
        }
    }
}

/// The prompt of a [`ClientLogin`].
#[derive(Debug)]
pub(crate) struct ClientPrompt(pub(crate) Arc<ClientLogin>);

impl LoginPrompt for ClientPrompt {
    fn open(
        &self,
        registered: Option<String>,
    ) -> BoxFuture<'static, Result<Box<dyn LoginPage>, OAuthError>> {
        let login = Arc::clone(&self.0);
        Box::pin(async move {
            login.check_wanted()?;
            let listener = listen(login.port, registered.as_deref()).await?;
            Ok(Box::new(ClientPage { listener, login }) as Box<dyn LoginPage>)
        })
    }

    fn can_ask_now(&self) -> bool {
        let login = &self.0;
        let is_stored = login.is_stored_meanwhile.swap(false, Ordering::Relaxed);
        is_stored || (login.can_ask() && login.is_wanted.load(Ordering::Relaxed))
    }

    fn until_released(&self) -> BoxFuture<'static, OAuthError> {
        let login = Arc::clone(&self.0);
        Box::pin(async move {
            let mut states = login.state.subscribe();
            let is_released = |state: &LoginState| {
                matches!(state, LoginState::Asked(_))
                    && login.releases_requests.load(Ordering::Relaxed)
            };
            // The sender is in `login`.
            let _ = states.wait_for(is_released).await;
            OAuthError::Prompt { reason: format!("{ASKED}; {}", login.advice()) }
        })
    }
}

/// The page that the browser returns to.
struct ClientPage {
    listener: RedirectListener,
    login: Arc<ClientLogin>,
}

impl LoginPage for ClientPage {
    fn redirect_uri(&self) -> &str {
        self.listener.redirect_uri()
    }

    fn authorize<'a>(
        &'a self,
        request: &'a AuthorizationRequest,
    ) -> BoxFuture<'a, Result<String, OAuthError>> {
        Box::pin(async move {
            let url = openable_url(request)?;
            let _wait = LoginWait::begin();
            let asked = self.login.begin(url, request.issuer());
            let arrived = self.listener.wait_for_query(|query| request.is_response(query));
            let answer = timeout(PERSON_TIMEOUT, async {
                tokio::select! {
                    query = arrived => Ok(query),
                    () = asked.declined.notified() => {
                        Err(OAuthError::Declined { issuer: request.issuer().to_owned() })
                    }
                }
            });
            let seconds = PERSON_TIMEOUT.as_secs();
            let answer = answer.await.unwrap_or(Err(OAuthError::TimedOut { seconds }));
            let is_answered = answer.is_ok();
            self.login.state.send_replace(LoginState::Ended { at: Instant::now(), is_answered });
            answer
        })
    }
}

impl ClientLogin {
    /// Opens the browser, and lets calls show the address.
    fn begin(&self, url: String, issuer: &str) -> Arc<AskedLogin> {
        if self.has_browser {
            // The address itself is not written: the client may store this output.
            let (server, place) = (printable(&self.server), printable(issuer));
            output::write_message(&format!(
                "creole: the browser opens for the login to {server} at {place}"
            ));
            if let Err(error) = browser::open(&url) {
                let advice = self.advice();
                output::write_message(&format!("creole: cannot open a browser: {error}; {advice}"));
            }
        }
        let asked = Arc::new(AskedLogin {
            url,
            issuer: issuer.to_owned(),
            is_shown: AtomicBool::new(false),
            declined: Notify::new(),
        });
        self.state.send_replace(LoginState::Asked(Arc::clone(&asked)));
        asked
    }

    /// Whether the server may be ready soon: a person is asked, or has just logged in.
    fn may_end_soon(&self) -> bool {
        match &*self.state.borrow() {
            LoginState::Idle => false,
            LoginState::Asked(_) => true,
            // The server gets the token now, or a moment later says why there is none.
            LoginState::Ended { at, is_answered } => {
                let timeout = if *is_answered { READY_TIMEOUT } else { REASON_TIMEOUT };
                at.elapsed() < timeout
            }
        }
    }

    /// Whether there is a stored login. Another command may have made it.
    async fn is_stored(&self) -> bool {
        let Some((store, key)) = self.stored.clone() else { return false };
        let read = tokio::task::spawn_blocking(move || store.read(&key));
        // A file that cannot be used is no login.
        matches!(read.await, Ok(Ok(Some(_))))
    }

    /// The login that a person is asked for now.
    fn asked(&self) -> Option<Arc<AskedLogin>> {
        match &*self.state.borrow() {
            LoginState::Asked(asked) => Some(Arc::clone(asked)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
