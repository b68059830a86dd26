//! Connections as operators see them. What identifies a principal is a secret, so only its digest is shown.

use creole::internal::seal::digest;
use creole::proto::wire::hex;

use crate::upstream::connections::session_key::SessionOwner;

/// How many bytes of the digest identify a principal.
const DIGEST_BYTES: usize = 4;

/// An open connection to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectedConnection {
    /// `gateway`, `lists`, or the start of the SHA-256 of the principal's binding, in hexadecimal digits.
    pub owner: String,
    /// Whether a call or a session of a client uses it.
    pub is_busy: bool,
    /// How many calls run in it.
    pub calls: usize,
}

/// The owner of a connection, without what could be used as a credential.
pub(super) fn owner_name(owner: Option<&SessionOwner>) -> String {
    match owner {
        Some(
            SessionOwner::Principal(principal) | SessionOwner::ClientSession { principal, .. },
        ) => hex(&digest(principal.as_bytes())[..DIGEST_BYTES]),
        Some(SessionOwner::ListsOnly) => "lists".to_owned(),
        Some(SessionOwner::Gateway) | None => "gateway".to_owned(),
    }
}
