//! The principal of a caller, and the requirement for its admission.

use std::sync::Arc;

use super::challenge::Challenge;
use crate::call::LOCAL_PRINCIPAL;

/// The principal of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Stable over restarts and password changes: `user:alice`, `key:ci`, `local`. Sessions, states and cursors are
    /// bound to it.
    pub id: Arc<str>,
    /// The roles that the operator assigned.
    pub roles: Arc<[Arc<str>]>,
}

impl Principal {
    /// The principal of a server without authentication, such as on stdio.
    #[must_use]
    pub fn local() -> Self {
        Self { id: LOCAL_PRINCIPAL.into(), roles: Arc::default() }
    }

    pub(super) fn user(name: &str, roles: &Arc<[Arc<str>]>) -> Self {
        Self { id: format!("user:{name}").into(), roles: Arc::clone(roles) }
    }

    pub(super) fn key(name: &str, roles: &Arc<[Arc<str>]>) -> Self {
        Self { id: format!("key:{name}").into(), roles: Arc::clone(roles) }
    }

    /// Whether the principal has this role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|each| &**each == role)
    }
}

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
                Err(Challenge::forbidden(role, principal.id.starts_with("key:")))
            }
            _ => Ok(()),
        }
    }
}
