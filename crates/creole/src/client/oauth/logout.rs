//! Ends a login.

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

/// Deletes a stored login, and before that asks the authorization server to revoke its tokens. The file is deleted even
/// if the server does not answer.
///
/// # Errors
/// When the file cannot be read or deleted.
pub async fn log_out(
    store: &LoginStore,
    key: &LoginKey,
    settings: &LoginSettings,
    revokes: bool,
) -> Result<LogoutOutcome, StoreError> {
    let locked = store.lock(key).await?;
    let Some(login) = locked.read()? else { return Ok(LogoutOutcome::NotLoggedIn) };
    let revoked = match revokes {
        true => login.revoke(&HttpExchange::default(), settings).await,
        false => Ok(false),
    };
    locked.delete()?;
    Ok(match revoked {
        Ok(is_revoked) => LogoutOutcome::Done { is_revoked },
        Err(error) => LogoutOutcome::NotRevoked(error),
    })
}
