//! The key of an upstream session: its owner, its era, and the input requests that the upstream may send there.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use creole::proto::revision::{Era, Rules};

use crate::upstream::connections::capabilities::DeclaredInputs;

/// The era of upstreams that keep sessions of their callers.
pub(crate) const SESSION_ERA: Era = Rules::NEWEST_HANDSHAKE.era;

/// The owner of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionOwner {
    /// The gateway, or all callers if the configuration declares sharing to be safe.
    Gateway,
    /// The gateway, to fetch the lists for one kind of client.
    ListsOnly,
    /// One principal.
    Principal(Arc<str>),
    /// One connection or session of a client.
    ClientSession { principal: Arc<str>, name: Arc<str> },
}

impl SessionOwner {
    /// The principal, unless the gateway owns the session.
    pub(crate) fn principal(&self) -> Option<&str> {
        match self {
            Self::Principal(principal) | Self::ClientSession { principal, .. } => Some(principal),
            Self::Gateway | Self::ListsOnly => None,
        }
    }

    /// The owner that the session counts for in limits.
    pub(crate) fn quota_owner(&self) -> Self {
        match self {
            Self::ClientSession { principal, .. } => Self::Principal(Arc::clone(principal)),
            other => other.clone(),
        }
    }
}

/// The key of a session. Calls with the same key may share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionKey {
    pub(crate) owner: SessionOwner,
    /// The era of its callers. If the upstream lacks it, the session uses the other one.
    pub(crate) era: Era,
    /// The capabilities that were declared to the upstream.
    pub(crate) inputs: DeclaredInputs,
    /// Whether it serves one call at a time, because input requests could not be attributed to a call otherwise.
    pub(crate) exclusive: bool,
    /// The index among several exclusive sessions.
    pub(crate) lane: usize,
}

impl Hash for SessionKey {
    /// Hashes only the owner. The other fields are mostly equal and are only compared.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.owner.hash(state);
    }
}
