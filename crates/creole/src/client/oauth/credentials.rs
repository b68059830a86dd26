//! The credentials of a server that wants OAuth.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use creole_oauth::error::OAuthError;
use creole_oauth::http::exchange::Exchange as _;
use creole_oauth::tokens::endpoint::TokenType;
use creole_oauth::tokens::login::Login;
use creole_oauth::web_url::WebUrl;
use creole_proto::fault::Fault;
use tokio::time::Instant;

use super::logins::Logins;
use super::options::{LoginMethod, OAuthOptions};
use super::store::LoginKey;
use crate::chain::BoxFuture;
use crate::client::credentials::{Authorization, Credentials, Refusal};

/// The shortest time until a token is renewed. A server may say that its tokens expire at once.
const MIN_RENEWAL_DELAY: Duration = Duration::from_secs(5);

/// The credentials of one server. Clones share them.
#[derive(Clone)]
pub struct OAuthCredentials(Arc<Logins>);

impl OAuthCredentials {
    /// The credentials of the server at this address. The name is used in messages.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn new(
        name: impl Into<String>,
        url: &str,
        options: OAuthOptions,
    ) -> Result<Self, OAuthError> {
        let member = "the server's address";
        let server = WebUrl::parse(url).map_err(|error| OAuthError::Address { member, error })?;
        Ok(Self(Arc::new(Logins::new(name.into(), server, options))))
    }

    /// The current login, if one was used or made.
    pub fn login(&self) -> Option<Login> {
        self.0.login()
    }

    /// Whether a login was made through these credentials. A stored login that was used or refreshed does not
    /// count.
    pub fn has_logged_in(&self) -> bool {
        self.0.has_logged_in()
    }

    /// Where the login is stored.
    pub fn key(&self) -> &LoginKey {
        self.0.key()
    }
}

impl fmt::Debug for OAuthCredentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OAuthCredentials({})", self.0.server.without_query())
    }
}

impl Credentials for OAuthCredentials {
    fn fetch(
        &self,
        refusal: Option<Refusal>,
    ) -> BoxFuture<'static, Result<Option<Authorization>, Fault>> {
        let logins = Arc::clone(&self.0);
        Box::pin(async move {
            let login = match refusal {
                None => logins.current().await,
                Some(refusal) => logins.replace(&refusal).await.map(Some),
            };
            let authorization = login.and_then(|login| {
                let authorization = login.map(|login| authorization(&logins, &login)).transpose();
                authorization.map_err(Into::into)
            });
            authorization.map_err(|failure| logins.fault(&failure))
        })
    }

    fn timeout(&self) -> Duration {
        self.0.options.timeout
    }

    fn limits_itself(&self) -> bool {
        true
    }

    fn asks_person(&self) -> bool {
        self.0.options.method.asks_person()
    }

    fn until_released(&self) -> BoxFuture<'static, Fault> {
        let logins = Arc::clone(&self.0);
        Box::pin(async move {
            match &logins.options.method {
                LoginMethod::Person(prompt) => {
                    let error = prompt.until_released().await;
                    logins.fault(&error.into())
                }
                _ => std::future::pending().await,
            }
        })
    }

    fn can_retry_now(&self) -> bool {
        match &self.0.options.method {
            LoginMethod::Person(prompt) => self.0.could_not_ask() && prompt.can_ask_now(),
            _ => false,
        }
    }

    fn can_add_scopes(&self) -> bool {
        !matches!(self.0.options.method, LoginMethod::Stored)
    }

    fn extension(&self) -> Option<&'static str> {
        match &self.0.options.method {
            LoginMethod::Program(source) => source.extension(),
            _ => None,
        }
    }
}

/// The token of a login, which is renewed before it expires.
fn authorization(logins: &Logins, login: &Login) -> Result<Authorization, OAuthError> {
    let token = login.access_token.expose();
    let authorization = match (login.token_type, &login.dpop_key) {
        (TokenType::Dpop, Some(key)) => Authorization::dpop(token, logins.dpop_key(key)?),
        _ => Authorization::bearer(token),
    };
    let unusable = || OAuthError::Key { reason: "the token cannot be sent in a header".to_owned() };
    let authorization = authorization.ok_or_else(unusable)?;
    if !logins.can_renew(login) {
        return Ok(authorization);
    }
    let delay = login.refresh_at().saturating_sub(logins.exchange.now());
    let delay = Duration::from_secs(delay).max(MIN_RENEWAL_DELAY);
    // A time that the clock cannot hold never comes.
    Ok(match Instant::now().checked_add(delay) {
        Some(at) => authorization.renewed_at(at),
        None => authorization,
    })
}
