//! Who looks at a list.

use creole_proto::revision::Era;

use crate::call::Context;

/// A client that looks at a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Viewer {
    /// Whether it repeats arguments in headers, and refuses tools that name these wrongly
    /// (2026-07-28 basic/transports/streamable-http, schema extension).
    pub(super) mirrors_headers: bool,
}

impl Viewer {
    pub(super) fn of(context: &Context) -> Self {
        let caller = context.caller();
        Self { mirrors_headers: caller.rules.era == Era::Stateless && context.is_sessionless() }
    }
}
