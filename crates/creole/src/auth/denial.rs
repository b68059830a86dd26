//! Why a caller is refused, for the log alone: callers are not told.

use super::challenge::Challenge;

/// Why a caller is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DenialReason {
    /// No credentials were sent, or none that can be read.
    NoCredentials,
    /// A kind of credentials that the server does not take.
    OtherScheme,
    /// No key is this one.
    UnknownKey,
    /// The key is known, and its time is over.
    ExpiredKey,
    /// No user has this name and this password.
    WrongPassword,
    /// The caller is known, and lacks the role.
    MissingRole,
    /// There were too many attempts.
    TooManyAttempts,
    /// Too many passwords wait to be checked.
    Busy,
}

impl DenialReason {
    /// The reason in words.
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::NoCredentials => "no credentials",
            Self::OtherScheme => "a scheme that is not accepted",
            Self::UnknownKey => "unknown key",
            Self::ExpiredKey => "expired key",
            Self::WrongPassword => "unknown user or wrong password",
            Self::MissingRole => "missing role",
            Self::TooManyAttempts => "too many attempts",
            Self::Busy => "too many callers at once",
        }
    }
}

/// What a caller is answered, and why.
pub(super) type Denial = Box<(Challenge, DenialReason)>;
