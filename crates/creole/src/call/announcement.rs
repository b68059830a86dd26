//! Changes that connections announce to their clients, with the recipients.

use std::sync::Arc;

use creole_proto::operation::Change;

use crate::call::Origin;

/// A change, and the clients that it is announced to.
#[derive(Clone, Debug, PartialEq)]
pub struct Announcement {
    /// The change.
    pub change: Change,
    /// The recipients.
    pub to: Recipients,
}

/// The clients that a change is announced to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// All of them.
    All,
    /// The clients of the principal with this binding: the change concerns only it.
    Principal(Arc<str>),
    /// The one client of a connection or session.
    Session(Arc<str>),
}

impl Recipients {
    /// Whether the client of this connection is a recipient.
    pub fn includes(&self, origin: &Origin) -> bool {
        match self {
            Self::All => true,
            Self::Principal(principal) => principal == origin.principal.binding(),
            Self::Session(name) => origin.session_name.as_ref() == Some(name),
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
