//! A request with an access token, and the decision about it.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use creole_oauth::resource::refusal::TokenRefusal;

use crate::auth::resource::ProtectedResource;
use crate::principal::Principal;

/// The scheme under which a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenScheme {
    Bearer,
    Dpop,
}

/// A request with an access token. Its `Debug` output hides token and proof.
#[derive(Clone, Copy)]
pub(crate) struct TokenCall<'a> {
    /// The token.
    pub(crate) token: &'a str,
    /// The scheme under which it is presented.
    pub(crate) scheme: TokenScheme,
    /// The header `DPoP`.
    pub(crate) proof: Option<&'a str>,
    /// The HTTP method.
    pub(crate) method: &'a str,
    /// The address of the resource, which is its default audience.
    pub(crate) url: &'a str,
    /// The address of the caller.
    pub(crate) peer: Option<IpAddr>,
    /// The SHA-256 of the certificate of the caller's connection.
    pub(crate) certificate: Option<[u8; 32]>,
    /// What the path requires.
    pub(crate) resource: &'a ProtectedResource,
}

impl fmt::Debug for TokenCall<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TokenCall")
            .field("url", &self.url)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

/// The decision about a request with an access token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TokenDecision {
    /// The token is valid.
    Granted(Principal),
    /// The token is refused.
    Invalid(TokenRefusal),
    /// The proof is refused.
    InvalidProof(TokenRefusal),
    /// The proof must have this nonce.
    UseNonce(String),
    /// Too many wrong tokens came from this network.
    Throttled(Duration),
    /// It cannot be known whether the token is valid.
    Unavailable(Duration),
}
