//! Changes that connections announce to their clients, with the recipients.

use std::fmt;
use std::sync::Arc;

use creole_proto::operation::Change;

use crate::call::Origin;
use crate::principal::Principal;

/// A change, and the clients that it is announced to.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// The change.
    pub change: Change,
    /// The recipients.
    pub to: Recipients,
}

/// Decides for each principal whether its clients are told of a change.
pub trait RecipientFilter: Send + Sync {
    /// Whether the clients of this principal are told.
    fn includes(&self, principal: &Principal) -> bool;
}

/// The clients that a change is announced to.
#[derive(Clone)]
pub enum Recipients {
    /// All of them.
    All,
    /// The clients of the principal with this binding: the change concerns only it.
    Principal(Arc<str>),
    /// The one client of a connection or session.
    Session(Arc<str>),
    /// The clients of the principals that a filter includes.
    Filtered(Arc<dyn RecipientFilter>),
}

impl PartialEq for Recipients {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, Self::All) => true,
            (Self::Principal(one), Self::Principal(other))
            | (Self::Session(one), Self::Session(other)) => one == other,
            (Self::Filtered(one), Self::Filtered(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl fmt::Debug for Recipients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("All"),
            Self::Principal(binding) => formatter.debug_tuple("Principal").field(binding).finish(),
            Self::Session(name) => formatter.debug_tuple("Session").field(name).finish(),
            Self::Filtered(_) => formatter.write_str("Filtered"),
        }
    }
}

impl Recipients {
    /// Whether the client of this connection is a recipient.
    pub fn includes(&self, origin: &Origin) -> bool {
        match self {
            Self::All => true,
            Self::Principal(principal) => principal == origin.principal.binding(),
            Self::Session(name) => origin.session_name.as_ref() == Some(name),
            Self::Filtered(filter) => filter.includes(&origin.principal),
        }
    }
}

impl From<Change> for Announcement {
    fn from(change: Change) -> Self {
        Self { change, to: Recipients::All }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_change_is_announced_to_its_owner_only() {
        let (ada, other) = (Origin::new("ada".into()), Origin::new("ada".into()));
        let (eve, alone) = (Origin::new("eve".into()), Origin::sessionless("ada".into()));
        let all = [&ada, &other, &eve, &alone];
        let told = |to: &Recipients| all.map(|origin| to.includes(origin));
        assert_eq!(told(&Recipients::All), [true; 4]);
        assert_eq!(told(&Recipients::Principal("ada".into())), [true, true, false, true]);
        let session = Recipients::Session(ada.session_name.clone().unwrap());
        assert_eq!(told(&session), [true, false, false, false]);
    }
}
