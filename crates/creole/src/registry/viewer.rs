//! A client that reads a list.

use std::sync::Arc;

use creole_proto::model::{Definition, ListKind};

use crate::call::Context;
use crate::chain;
use crate::chain::{Middleware, ViewerClass};

/// The layers of a chain, outermost first.
pub(super) type Layers = Arc<[Arc<dyn Middleware>]>;

/// A client that reads a list: its properties that determine what it sees.
#[derive(Clone)]
pub(super) struct Viewer {
    /// Whether it mirrors arguments in headers, and rejects tools that declare these incorrectly (2026-07-28
    /// basic/transports/streamable-http, schema extension).
    pub(super) mirrors_headers: bool,
    /// The class of its principal, if a layer shows principals different items.
    pub(super) class: Option<Arc<dyn ViewerClass>>,
}

impl Viewer {
    pub(super) fn of(context: &Context, layers: &Layers) -> Self {
        let caller = context.caller();
        Self {
            mirrors_headers: caller.rules.mirrored_headers && context.is_sessionless(),
            class: chain::viewer_class(layers, context.principal()),
        }
    }

    /// Whether the class of the viewer sees an item.
    pub(super) fn sees(&self, kind: ListKind, item: &Definition) -> bool {
        self.class.as_ref().is_none_or(|class| class.sees(kind, item))
    }

    pub(super) fn key(&self) -> ViewerKey {
        ViewerKey {
            mirrors_headers: self.mirrors_headers,
            class: self.class.as_ref().map(|class| class.id()),
        }
    }
}

/// What distinguishes viewers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ViewerKey {
    mirrors_headers: bool,
    class: Option<u64>,
}
