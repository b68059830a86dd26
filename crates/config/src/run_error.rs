//! Why a planned server cannot run.

use std::error::Error;
use std::fmt;

use creole::auth::AuthError;

/// Why a planned server cannot run.
#[derive(Debug)]
pub enum RunError {
    /// A file of users or keys is invalid.
    Credentials(AuthError),
    /// The server refuses to start for a reason that the user can change.
    Refused(String),
    /// The server could not be started, or failed.
    Serve(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Credentials(error) => write!(formatter, "error: {error}"),
            Self::Refused(what) | Self::Serve(what) => write!(formatter, "error: {what}"),
        }
    }
}

impl Error for RunError {}

impl From<AuthError> for RunError {
    fn from(error: AuthError) -> Self {
        Self::Credentials(error)
    }
}
