//! The caller of one request of a connection.

use std::sync::Arc;

use creole_proto::server::Call;

use crate::principal::Principal;
use crate::scopes::{ScopeDenial, ScopeRules};
use crate::telemetry::facts::RequestSource;

/// The caller of one request, where it may differ from that of the connection.
#[derive(Clone, Copy)]
pub(crate) struct RequestCaller<'a> {
    pub(crate) principal: &'a Principal,
    /// The scopes that operations require of its access token.
    pub(crate) scopes: Option<&'a Arc<ScopeRules>>,
    /// What the transport knows of the request, for the telemetry.
    pub(crate) source: Option<&'a dyn RequestSource>,
}

impl RequestCaller<'_> {
    /// What the caller lacks for a call.
    pub(super) fn find_denial(self, call: &Call) -> Option<ScopeDenial> {
        self.scopes?.check(self.principal, &call.operation).err()
    }
}
