//! Why a token is refused. The words are logged; the caller does not learn them.

use std::fmt;

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenRefusal {
    /// It is past its end.
    Expired,
    /// It is for another resource, or for none.
    Audience,
    /// Its issuer is not configured.
    Issuer,
    /// The signature does not fit the key.
    Signature,
    /// The issuer has no such key.
    UnknownKey,
    /// The algorithm is not allowed.
    Algorithm,
    /// It is another kind of token.
    Typ,
    /// A claim is missing, has the wrong type or is not allowed.
    Claims,
    /// It is not a token that can be read.
    Malformed,
    /// The issuer says that it is not valid.
    Inactive,
    /// The caller does not prove that it has the key or the certificate of the token.
    Binding,
    /// The proof was used before.
    Replay,
}

impl TokenRefusal {
    /// The word in logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Audience => "audience",
            Self::Issuer => "issuer",
            Self::Signature => "signature",
            Self::UnknownKey => "unknown-key",
            Self::Algorithm => "algorithm",
            Self::Typ => "typ",
            Self::Claims => "claims",
            Self::Malformed => "malformed",
            Self::Inactive => "inactive",
            Self::Binding => "binding",
            Self::Replay => "replay",
        }
    }
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl std::error::Error for TokenRefusal {}
