//! Ends a login.

use std::sync::Arc;

use creole_oauth::error::OAuthError;
use creole_oauth::settings::LoginSettings;

use super::exchange::HttpExchange;
use super::store::{LoginKey, LoginStore, StoreError};

/// What became of a login.
#[derive(Debug)]
#[non_exhaustive]
pub enum LogoutOutcome {
    /// There was none.
    NotLoggedIn,
    /// It is deleted, and revoked if the server can do that.
    Done {
        /// Whether the server revoked its tokens.
        is_revoked: bool,
    },
    /// It is deleted, but the server did not revoke its tokens.
    NotRevoked(OAuthError),
}

/// How a login is revoked at its authorization server.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RevocationOptions {
    /// The client of the login, and the addresses that may be asked.
    pub settings: LoginSettings,
    /// The root certificates of the authorization server in PEM form, instead of the system's.
    pub certificates: Option<Arc<[u8]>>,
}

/// Deletes a stored login, and before that asks the authorization server to revoke its tokens, unless there are no options
/// for that. The file is deleted even if the server does not respond.
///
/// # Errors
/// When the file cannot be read or deleted.
pub async fn log_out(
    store: &LoginStore,
    key: &LoginKey,
    revocation: Option<&RevocationOptions>,
) -> Result<LogoutOutcome, StoreError> {
    let locked = store.lock(key).await?;
    let Some(login) = locked.read()? else { return Ok(LogoutOutcome::NotLoggedIn) };
    let revoked = match revocation {
        Some(RevocationOptions { settings, certificates }) => {
            login.revoke(&HttpExchange::new(certificates.clone()), settings).await
        }
        None => Ok(false),
    };
    locked.delete()?;
    Ok(match revoked {
        Ok(is_revoked) => LogoutOutcome::Done { is_revoked },
        Err(error) => LogoutOutcome::NotRevoked(error),
    })
}
