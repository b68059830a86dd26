//! The logins of one server: when one is used, refreshed or replaced.

use std::sync::Arc;

use creole_oauth::crypto::dpop::DpopKey;
use creole_oauth::crypto::jose::SigningKey;
use creole_oauth::discovery::Discovered;
use creole_oauth::discovery::challenge::Challenge;
use creole_oauth::error::OAuthError;
use creole_oauth::flow::attempt::{LoginTarget, find_server};
use creole_oauth::flow::device::log_in_device;
use creole_oauth::flow::person::log_in;
use creole_oauth::flow::program::log_in_program;
use creole_oauth::http::exchange::Exchange as _;
use creole_oauth::scopes::Scopes;
use creole_oauth::secret::SecretText;
use creole_oauth::tokens::client::{ClientSource, OAuthClient};
use creole_oauth::tokens::login::Login;
use creole_oauth::web_url::WebUrl;
use creole_proto::fault::Fault;
use tokio::time::{Instant, timeout};

use super::exchange::HttpExchange;
use super::fault::LoginFailure;
use super::limits::LoginLimits;
use super::options::{LoginMethod, OAuthOptions};
use super::prompt::{PromptBrowser, PromptScreen};
use super::requirement::{DISCOVERY_TIMEOUT, late_documents};
use super::store::{LockedLogin, LoginKey};
use super::store_access::{StoreAccess, write};
use crate::client::credentials::Refusal;
use crate::sync::Mutex;

/// The pause before a refresh is tried again.
const RETRY_SECONDS: u64 = 1;

/// The age of a token, in seconds, below which its refusal is not a reason to refresh it again.
const NEW_TOKEN_SECONDS: u64 = 60;

/// The logins of one server.
pub(super) struct Logins {
    /// The name of the server in messages.
    name: String,
    pub(super) server: WebUrl,
    pub(super) options: OAuthOptions,
    pub(super) exchange: HttpExchange,
    store: StoreAccess,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    login: Option<Login>,
    has_logged_in: bool,
    /// Whether the last login failed because no person could be asked.
    could_not_ask: bool,
    /// The challenges of the last refusal, for a program that logs in again before its token expires.
    challenges: Option<Vec<Challenge>>,
    /// The refresh token that the server does not take any more.
    refused_refresh: Option<SecretText>,
    /// The key of the login's tokens, with the nonces of the servers.
    dpop: Option<(SecretText, Arc<DpopKey>)>,
    limits: LoginLimits,
    /// Registrations that are not stored in a file.
    clients: Vec<(String, OAuthClient)>,
}

impl Logins {
    pub(super) fn new(name: String, server: WebUrl, options: OAuthOptions) -> Self {
        let is_program = matches!(options.method, LoginMethod::Program(_));
        let key = LoginKey::new(server.as_str(), options.settings.client_id.as_deref());
        let store = StoreAccess { store: options.store.clone().filter(|_| !is_program), key };
        let exchange = HttpExchange::new(options.certificates.clone()).with_documents();
        Self { name, server, options, exchange, store, state: Mutex::default() }
    }

    pub(super) fn login(&self) -> Option<Login> {
        self.state.lock().login.clone()
    }

    pub(super) fn has_logged_in(&self) -> bool {
        self.state.lock().has_logged_in
    }

    /// Whether the last login failed because no person could be asked.
    pub(super) fn could_not_ask(&self) -> bool {
        self.state.lock().could_not_ask
    }

    pub(super) fn key(&self) -> &LoginKey {
        &self.store.key
    }

    pub(super) fn fault(&self, failure: &LoginFailure) -> Fault {
        let default = || format!("creole login {}", self.server.without_query());
        let command = self.options.login_command.clone().unwrap_or_else(default);
        if self.options.hides_reasons {
            tracing::error!(upstream = %self.name, "the login failed: {failure}");
        }
        failure.fault(&self.name, &command, self.options.hides_reasons)
    }

    /// Whether a token can be renewed without a person.
    pub(super) fn can_renew(&self, login: &Login) -> bool {
        login.refresh_token.is_some() || matches!(self.options.method, LoginMethod::Program(_))
    }

    /// The key of this text, with the nonces of earlier responses.
    pub(super) fn dpop_key(&self, text: &SecretText) -> Result<Arc<DpopKey>, OAuthError> {
        let mut state = self.state.lock();
        if let Some((_, key)) = state.dpop.as_ref().filter(|(known, _)| known == text) {
            return Ok(Arc::clone(key));
        }
        let key = Arc::new(DpopKey::new(SigningKey::import(text.expose())?));
        state.dpop = Some((text.clone(), Arc::clone(&key)));
        Ok(key)
    }

    /// The login before a request: that of an earlier request or process, renewed if it is about to expire.
    pub(super) async fn current(self: &Arc<Self>) -> Result<Option<Login>, LoginFailure> {
        let known = self.login();
        let login = match known {
            Some(login) => login,
            None => match self.store.read().await?.filter(|login| self.has_wanted_scopes(login)) {
                Some(login) => self.adopt(login),
                None => return Ok(None),
            },
        };
        let now = self.exchange.now();
        if login.is_fresh(now) {
            return Ok(Some(login));
        }
        let renewed = match &self.options.method {
            LoginMethod::Program(_) => self.renew_program(&login).await,
            _ => self.refresh(&login).await,
        };
        match renewed {
            Ok(Some(renewed)) => Ok(Some(renewed)),
            // The server decides about the old token, and says what it wants instead.
            Ok(None) => Ok(Some(login)),
            Err(failure) if failure.is_temporary() && login.is_valid(now) => Ok(Some(login)),
            Err(failure) => Err(failure),
        }
    }

    /// Another login in place of a refused one.
    pub(super) async fn replace(
        self: &Arc<Self>,
        refusal: &Refusal,
    ) -> Result<Login, LoginFailure> {
        let challenges = Challenge::parse_all(refusal.challenges.iter().map(String::as_str));
        self.state.lock().challenges = Some(challenges.clone());
        let refused = refusal.authorization.as_ref().map(|it| it.secret().to_owned());
        let previous = match self.store.read().await? {
            Some(stored) => Some(stored),
            None => self.login(),
        };
        let wanted = Wanted { refused, needs_scopes: refusal.needs_scopes, challenges };
        if let Some(login) = previous.as_ref().filter(|login| self.is_other(login, &wanted)) {
            return Ok(self.adopt(login.clone()));
        }
        if refusal.needs_scopes {
            let scopes = wanted.scopes();
            if !self.state.lock().limits.count_step_up(&scopes, Instant::now()) {
                return Err(LoginFailure::MissingScopes(scopes));
            }
            let found = self.find_server(&wanted.challenges, previous.as_ref()).await?;
            return self.log_in(&wanted, previous.as_ref(), &found).await;
        }
        if previous.is_none() && matches!(self.options.method, LoginMethod::Stored) {
            return Err(LoginFailure::NeedsPerson);
        }
        if wanted.refused.is_some() {
            // The server may use another issuer now, which must see nothing of the old login.
            self.exchange.forget_documents();
        }
        let found = self.find_server(&wanted.challenges, previous.as_ref()).await?;
        let is_refreshed =
            |login: &&Login| login.issuer == found.server.issuer && self.may_refresh(login);
        if let Some(login) = previous.as_ref().filter(is_refreshed)
            && let Some(refreshed) = self.refresh(login).await?
        {
            return Ok(refreshed);
        }
        self.log_in(&wanted, previous.as_ref(), &found).await
    }

    /// Whether this login is another than the refused one, so that it is worth a try: another process has stored it.
    fn is_other(&self, login: &Login, wanted: &Wanted) -> bool {
        let is_new = wanted.refused.as_deref() != Some(login.access_token.expose());
        let has_scopes =
            !wanted.needs_scopes || login.requested_scopes.contains_all(&wanted.scopes());
        let is_wanted = wanted.refused.is_some() || self.has_wanted_scopes(login);
        is_new && has_scopes && is_wanted && login.is_fresh(self.exchange.now())
    }

    /// Whether a login has the scopes of the configuration. One without them is used only if no person can log in.
    fn has_wanted_scopes(&self, login: &Login) -> bool {
        !self.options.method.asks_person()
            || login.requested_scopes.contains_all(&self.options.settings.scopes)
    }

    /// Whether a refused login may be refreshed: not if it was just refreshed.
    fn may_refresh(&self, login: &Login) -> bool {
        let now = self.exchange.now();
        let is_new = now < login.created_at.saturating_add(NEW_TOKEN_SECONDS);
        let is_refused = self.state.lock().refused_refresh == login.refresh_token;
        login.refresh_token.is_some() && !is_refused && !(is_new && login.is_fresh(now))
    }

    async fn find_server(
        &self,
        challenges: &[Challenge],
        previous: Option<&Login>,
    ) -> Result<Discovered, LoginFailure> {
        let registrations = self.registrations().await?;
        let (server, registrations) = (&self.server, registrations.as_slice());
        let target = LoginTarget { server, challenges, previous, registrations };
        let finding = find_server(&self.exchange, &self.options.settings, target);
        let found = timeout(DISCOVERY_TIMEOUT, finding).await;
        Ok(found.unwrap_or_else(|_| Err(late_documents(&self.server)))?)
    }

    /// Refreshes a login; `None` if a new login is needed. It goes on when the waiting request is dropped: a
    /// refresh token that was sent can be used only once, so the response must be stored.
    async fn refresh(self: &Arc<Self>, login: &Login) -> Result<Option<Login>, LoginFailure> {
        let (own, login) = (Arc::clone(self), login.clone());
        let refreshing = tokio::spawn(async move { own.refresh_locked(login).await });
        refreshing.await.unwrap_or_else(|_| {
            let reason = "the refresh was aborted".to_owned();
            Err(OAuthError::Prompt { reason }.into())
        })
    }

    /// Refreshes a login. The lock is held from reading the file to writing it.
    async fn refresh_locked(&self, login: Login) -> Result<Option<Login>, LoginFailure> {
        let locked = self.store.lock().await?.map(Arc::new);
        let current = match &locked {
            None => login.clone(),
            Some(locked) => match locked.read()? {
                // There was a logout.
                None => {
                    self.state.lock().login = None;
                    return Ok(None);
                }
                Some(stored) => stored,
            },
        };
        if current.access_token != login.access_token && current.is_fresh(self.exchange.now()) {
            return Ok(Some(self.adopt(current)));
        }
        if current.refresh_token.is_none() || current.issuer != login.issuer {
            return Ok(None);
        }
        match self.send_refresh(&current).await {
            Ok(refreshed) => {
                if let Some(locked) = &locked
                    && let Err(failure) = write(locked, &refreshed).await
                {
                    // The token is good, but other processes do not see it.
                    tracing::error!(upstream = %self.name, "the login was not stored: {failure}");
                }
                Ok(Some(self.adopt(refreshed)))
            }
            Err(OAuthError::Refused { error, .. })
                if error.is("invalid_grant") || error.is("invalid_client") =>
            {
                let forgets = error.is("invalid_client");
                self.forget_refused(&current, forgets, locked.as_deref()).await
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn send_refresh(&self, login: &Login) -> Result<Login, OAuthError> {
        let settings = &self.options.settings;
        match login.refresh(&self.exchange, settings).await {
            Err(error) if error.is_temporary() => {
                self.exchange.wait(RETRY_SECONDS).await;
                login.refresh(&self.exchange, settings).await
            }
            finished => finished,
        }
    }

    /// After a refused refresh: another program may have written the file without its lock.
    async fn forget_refused(
        &self,
        login: &Login,
        forgets_client: bool,
        locked: Option<&LockedLogin>,
    ) -> Result<Option<Login>, LoginFailure> {
        if let Some(stored) = locked.map(LockedLogin::read).transpose()?.flatten()
            && stored.access_token != login.access_token
            && stored.is_fresh(self.exchange.now())
        {
            return Ok(Some(self.adopt(stored)));
        }
        self.state.lock().refused_refresh.clone_from(&login.refresh_token);
        if forgets_client && login.client.source == ClientSource::Registered {
            self.state.lock().clients.retain(|(issuer, _)| *issuer != login.issuer);
            self.store.set_client(&login.issuer, None).await?;
        }
        Ok(None)
    }

    /// A new login of a program before its token expires; `None` if the server has not said yet what it wants.
    async fn renew_program(&self, login: &Login) -> Result<Option<Login>, LoginFailure> {
        let Some(challenges) = self.state.lock().challenges.clone() else { return Ok(None) };
        let wanted = Wanted { refused: None, needs_scopes: false, challenges };
        let found = self.find_server(&wanted.challenges, Some(login)).await?;
        self.make_program_login(&wanted, Some(login), &found).await.map(Some)
    }

    async fn make_program_login(
        &self,
        wanted: &Wanted,
        previous: Option<&Login>,
        found: &Discovered,
    ) -> Result<Login, LoginFailure> {
        let made = self.make_login(wanted, previous, found).await;
        if made.is_err() {
            self.exchange.forget_documents();
        }
        made
    }

    /// A new login after a refusal.
    async fn log_in(
        &self,
        wanted: &Wanted,
        previous: Option<&Login>,
        found: &Discovered,
    ) -> Result<Login, LoginFailure> {
        let asks_person = self.options.method.asks_person();
        if !self.state.lock().limits.count_login(asks_person, Instant::now()) {
            return Err(LoginFailure::TooManyLogins);
        }
        if !asks_person {
            return self.make_program_login(wanted, previous, found).await;
        }
        // One process asks the person, and the others wait for the result.
        let _prompt = self.store.lock_prompt().await?;
        if let Some(stored) = self.store.read().await?.filter(|login| self.is_other(login, wanted))
        {
            return Ok(self.adopt(stored));
        }
        let made = self.make_login(wanted, previous, found).await;
        let could_not_ask = matches!(&made, Err(LoginFailure::OAuth(OAuthError::Prompt { .. })));
        let mut state = self.state.lock();
        state.could_not_ask = could_not_ask;
        if could_not_ask {
            state.limits.uncount_login();
        }
        drop(state);
        if made.is_err() && !could_not_ask {
            self.exchange.forget_documents();
        }
        made
    }

    async fn make_login(
        &self,
        wanted: &Wanted,
        previous: Option<&Login>,
        found: &Discovered,
    ) -> Result<Login, LoginFailure> {
        let registrations = self.registrations().await?;
        let target = LoginTarget {
            server: &self.server,
            challenges: &wanted.challenges,
            previous,
            registrations: &registrations,
        };
        let (exchange, settings) = (&self.exchange, &self.options.settings);
        let login = match &self.options.method {
            LoginMethod::Stored => return Err(LoginFailure::NeedsPerson),
            LoginMethod::Program(source) => {
                let grant = source.grant().await?;
                log_in_program(exchange, settings, target, found, &grant).await?
            }
            LoginMethod::Person(prompt) => {
                let browser = PromptBrowser(Arc::clone(prompt));
                log_in(exchange, &browser, settings, target, found).await?
            }
            LoginMethod::Device(prompt) => {
                let screen = PromptScreen(Arc::clone(prompt));
                log_in_device(exchange, &screen, settings, target, found).await?
            }
        };
        self.store_client(&login).await?;
        if let Some(locked) = self.store.lock().await?.map(Arc::new) {
            write(&locked, &login).await?;
        }
        self.state.lock().has_logged_in = true;
        Ok(self.adopt(login))
    }

    /// The registrations that are known.
    async fn registrations(&self) -> Result<Vec<(String, OAuthClient)>, LoginFailure> {
        let mut known = self.state.lock().clients.clone();
        known.extend(self.store.clients().await?);
        Ok(known)
    }

    /// Stores the registration of a login with a browser. One for a device has no redirect address.
    async fn store_client(&self, login: &Login) -> Result<(), LoginFailure> {
        let client = &login.client;
        if client.source != ClientSource::Registered || client.redirect_uri.is_none() {
            return Ok(());
        }
        self.keep_client(&login.issuer, client);
        self.store.set_client(&login.issuer, Some(client)).await
    }

    fn keep_client(&self, issuer: &str, client: &OAuthClient) {
        let mut state = self.state.lock();
        state.clients.retain(|(known, _)| known != issuer);
        state.clients.push((issuer.to_owned(), client.clone()));
    }

    /// Uses a login from now on.
    fn adopt(&self, login: Login) -> Login {
        self.state.lock().login = Some(login.clone());
        login
    }
}

/// What the server wants after a refusal.
struct Wanted {
    /// The token that it refused.
    refused: Option<String>,
    /// Whether it wants further scopes.
    needs_scopes: bool,
    challenges: Vec<Challenge>,
}

impl Wanted {
    /// The scopes that the server names.
    fn scopes(&self) -> Scopes {
        Scopes::parse(Challenge::oauth_parameter(&self.challenges, "scope").unwrap_or_default())
    }
}
