//! The origin of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::principal::Principal;
use crate::scopes::ScopeRules;
use crate::telemetry::facts::Via;

/// The origin of a call.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The principal, whose binding state, cursors and tasks belong to.
    pub principal: Principal,
    /// The name of the connection or session, unique within the process.
    pub session_name: Option<Arc<str>>,
    /// The scopes that operations require of the principal's access token.
    pub(crate) scopes: Option<Arc<ScopeRules>>,
    /// Where the calls come from.
    pub(crate) via: Via,
}

impl Origin {
    /// An origin with a connection or session, which gets a new name.
    pub fn new(principal: Principal) -> Self {
        static CONVERSATIONS: AtomicU64 = AtomicU64::new(0);
        let number = CONVERSATIONS.fetch_add(1, Ordering::Relaxed);
        Self {
            principal,
            session_name: Some(number.to_string().into()),
            scopes: None,
            via: Via::default(),
        }
    }

    /// An origin whose requests have no session.
    pub fn sessionless(principal: Principal) -> Self {
        Self { principal, session_name: None, scopes: None, via: Via::default() }
    }

    /// The same origin of calls that come from there.
    pub(crate) fn via(self, via: Via) -> Self {
        Self { via, ..self }
    }

    /// The same connection or session, with the principal of one of its requests and the scopes of operations.
    pub(crate) fn of_request(
        &self,
        principal: &Principal,
        scopes: Option<&Arc<ScopeRules>>,
    ) -> Self {
        let session_name = self.session_name.clone();
        let (scopes, via) = (scopes.cloned(), self.via);
        Self { principal: principal.clone(), session_name, scopes, via }
    }
}
