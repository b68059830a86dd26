//! The key of an upstream session: who owns it, its era, and what the server may ask there.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use creole::proto::model::ClientCapabilities;
use creole::proto::revision::Era;

/// Whose a conversation is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SessionOwner {
    /// The gateway's own, or everybody's where that was declared to be safe.
    Gateway,
    /// The gateway's own, to see what is listed for a kind of client.
    ListsOnly,
    /// Somebody's.
    Principal(Arc<str>),
    /// That of one connection or session of a client.
    ClientSession { principal: Arc<str>, name: Arc<str> },
}

impl SessionOwner {
    /// Who has it, unless it is the gateway's own.
    pub(crate) fn principal(&self) -> Option<&str> {
        match self {
            Self::Principal(principal) | Self::ClientSession { principal, .. } => Some(principal),
            Self::Gateway | Self::ListsOnly => None,
        }
    }

    /// Whom its conversations are counted for.
    pub(crate) fn quota_owner(&self) -> Self {
        match self {
            Self::ClientSession { principal, .. } => Self::Principal(Arc::clone(principal)),
            other => other.clone(),
        }
    }
}

/// What a conversation is for; calls with the same key may share one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionKey {
    pub(crate) owner: SessionOwner,
    /// The era of the callers that it is for. Where the server lacks it, the conversation is of the other one.
    pub(crate) era: Era,
    /// What the server was told that it may ask for.
    pub(crate) inputs: DeclaredInputs,
    /// Whether one call at a time has it: otherwise nobody could tell which call a question belongs to.
    pub(crate) exclusive: bool,
    /// Which of several such conversations it is.
    pub(crate) lane: usize,
}

impl Hash for SessionKey {
    /// Callers differ by who they are; the rest, which is mostly alike, is only compared.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.owner.hash(state);
    }
}

/// What a server may ask for, as a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeclaredInputs {
    pub(crate) form: bool,
    pub(crate) url: bool,
    pub(crate) sampling: bool,
    pub(crate) roots: bool,
    pub(crate) raw: Option<String>,
}

impl DeclaredInputs {
    pub(crate) fn of(capabilities: &ClientCapabilities) -> Self {
        Self {
            form: capabilities.elicitation_form,
            url: capabilities.elicitation_url,
            sampling: capabilities.sampling,
            roots: capabilities.roots,
            raw: capabilities.raw.as_ref().map(|raw| raw.as_str().to_owned()),
        }
    }
}
