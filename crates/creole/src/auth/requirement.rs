//! The requirement for the admission of a principal.

use std::sync::Arc;

use crate::principal::Principal;

/// What a server requires of principals besides authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    role: Option<Arc<str>>,
}

impl Requirement {
    /// Every authenticated principal is admitted.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Only principals with this role are admitted.
    #[must_use]
    pub fn role(role: &str) -> Self {
        Self { role: Some(role.into()) }
    }

    /// The role that the principal lacks.
    pub(super) fn missing_role(&self, principal: &Principal) -> Option<&str> {
        self.role.as_deref().filter(|role| !principal.has_role(role))
    }
}
