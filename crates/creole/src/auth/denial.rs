//! The reasons for refusing a caller. They are logged, and the response does not reveal them.

use super::challenge::Challenge;

/// Why a caller is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DenialReason {
    /// No credentials were sent, or they are malformed.
    NoCredentials,
    /// An authentication scheme that the server does not offer.
    OtherScheme,
    /// The key is unknown.
    UnknownKey,
    /// The key is known and has expired.
    ExpiredKey,
    /// No user has this name and this password.
    WrongPassword,
    /// The principal is known and lacks the role.
    MissingRole,
    /// The access token is valid and lacks a scope.
    MissingScope,
    /// There were too many attempts.
    TooManyAttempts,
    /// Too many passwords wait to be verified.
    Busy,
}

impl DenialReason {
    /// The reason as text.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::NoCredentials => "no credentials",
            Self::OtherScheme => "unsupported authentication scheme",
            Self::UnknownKey => "unknown key",
            Self::ExpiredKey => "expired key",
            Self::WrongPassword => "unknown user or wrong password",
            Self::MissingRole => "missing role",
            Self::MissingScope => "scope",
            Self::TooManyAttempts => "too many attempts",
            Self::Busy => "too many callers at once",
        }
    }
}

/// The response to a refused caller, with the reason.
pub(super) type Denial = Box<(Challenge, DenialReason)>;
