//! The requirement for the admission of a principal.

use std::sync::Arc;

use super::challenge::Challenge;
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

    /// Checks that the principal is admitted.
    ///
    /// # Errors
    /// A challenge with status 403 that names the role, when the principal does not have it.
    pub fn check(&self, principal: &Principal) -> Result<(), Challenge> {
        match &self.role {
            Some(role) if !principal.has_role(role) => {
                Err(Challenge::forbidden(role, principal.id().starts_with("key:")))
            }
            _ => Ok(()),
        }
    }
}
