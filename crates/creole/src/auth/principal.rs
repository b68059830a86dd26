//! Who is calling, and what a caller needs to be let in.

use std::sync::Arc;

use super::challenge::Challenge;

/// The id of the caller of a server that asks nobody who they are.
pub(crate) const LOCAL_PRINCIPAL: &str = "local";

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Stable over restarts and changes of the password: `user:alice`, `key:ci`, `local`. Sessions,
    /// states and cursors are bound to it.
    pub id: Arc<str>,
    /// What the caller may be, as whoever runs the server wrote it.
    pub roles: Arc<[Arc<str>]>,
}

impl Principal {
    /// The caller of a server that asks nobody who they are: on stdio, or without authentication.
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

    /// Whether the caller has this role.
    #[must_use]
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|each| &**each == role)
    }
}

/// What a server asks of its callers beyond being known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirement {
    role: Option<Arc<str>>,
}

impl Requirement {
    /// Everybody who is known may come in.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Only who has this role may come in.
    #[must_use]
    pub fn role(role: &str) -> Self {
        Self { role: Some(role.into()) }
    }

    /// Whether the caller may come in.
    ///
    /// # Errors
    /// A challenge with status 403 that names the role, when the caller does not have it.
    pub fn check(&self, principal: &Principal) -> Result<(), Challenge> {
        match &self.role {
            Some(role) if !principal.has_role(role) => {
                Err(Challenge::forbidden(role, principal.id.starts_with("key:")))
            }
            _ => Ok(()),
        }
    }
}
