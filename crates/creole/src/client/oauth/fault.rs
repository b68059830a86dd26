//! Why there is no login, in words for the caller.

use std::fmt;

use creole_oauth::error::OAuthError;
use creole_oauth::scopes::Scopes;
use creole_proto::fault::Fault;

use super::store::StoreError;
use crate::process::unavailable_fault;

/// Why there is no login.
#[derive(Debug)]
pub(super) enum LoginFailure {
    OAuth(OAuthError),
    Store(StoreError),
    /// A person is needed, and none is there.
    NeedsPerson,
    /// The server refused the tokens of several logins.
    TooManyLogins,
    /// The server demands scopes that several logins did not bring.
    MissingScopes(Scopes),
}

impl From<OAuthError> for LoginFailure {
    fn from(error: OAuthError) -> Self {
        Self::OAuth(error)
    }
}

impl From<StoreError> for LoginFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl LoginFailure {
    /// Whether the same may succeed later.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::OAuth(error) => error.is_temporary(),
            Self::Store(error) => matches!(error, StoreError::Locked { .. }),
            Self::NeedsPerson | Self::TooManyLogins | Self::MissingScopes(_) => false,
        }
    }

    /// The fault for the server of this name. The command logs in.
    pub(super) fn fault(&self, name: &str, command: &str, hides_reason: bool) -> Fault {
        let (detail, reason) = match self {
            Self::OAuth(_) | Self::Store(_) if hides_reason => {
                (format!("the login to `{name}` failed; the log has the reason"), "credentials")
            }
            Self::OAuth(_) | Self::Store(_) => {
                (format!("the login to `{name}` failed: {self}"), "credentials")
            }
            Self::NeedsPerson => (format!("`{name}` {self}; run: {command}"), "login_required"),
            Self::TooManyLogins => {
                (format!("`{name}` {self}; run later: {command}"), "login_required")
            }
            Self::MissingScopes(_) => (format!("`{name}` {self}"), "insufficient_scope"),
        };
        unavailable_fault(name, detail, reason)
    }
}

impl fmt::Display for LoginFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OAuth(error) => error.fmt(formatter),
            Self::Store(error) => error.fmt(formatter),
            Self::NeedsPerson => formatter.write_str("requires a login"),
            Self::TooManyLogins => formatter.write_str("refuses the tokens of several logins"),
            Self::MissingScopes(scopes) => {
                let scopes = scopes.to_parameter().unwrap_or_default();
                write!(formatter, "requires the scopes `{scopes}`, which the login did not get")
            }
        }
    }
}
