//! The holder whose quota a session counts for.

use std::net::IpAddr;
use std::sync::Arc;

use crate::auth::network_prefix;
use crate::principal::Principal;

/// The holder whose quota a session counts for: the identity of its principal, or without authentication the network it
/// was opened from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum QuotaHolder {
    Principal(Arc<str>),
    Network([u8; 16]),
}

impl QuotaHolder {
    /// The holder of a session of this principal that is opened from this address.
    pub(crate) fn new(principal: &Principal, client: Option<IpAddr>) -> Self {
        match principal.is_local() {
            true => Self::Network(network_prefix(client)),
            false => Self::Principal(Arc::clone(principal.identity())),
        }
    }
}
