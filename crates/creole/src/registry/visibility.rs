//! The viewer of a list: the properties of a client that determine what it sees.

use crate::call::Context;

/// A client that reads a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Viewer {
    /// Whether it mirrors arguments in headers, and rejects tools that declare these incorrectly (2026-07-28
    /// basic/transports/streamable-http, schema extension).
    pub(super) mirrors_headers: bool,
}

impl Viewer {
    pub(super) fn of(context: &Context) -> Self {
        let caller = context.caller();
        Self { mirrors_headers: caller.rules.mirrored_headers && context.is_sessionless() }
    }
}
