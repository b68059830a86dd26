//! What layers change in the events and input requests of a call.

use std::iter::successors;
use std::sync::Arc;

use creole_proto::model::InputRequest;
use creole_proto::operation::Event;

/// The rewrite of one layer, and the layers outside of it.
pub(super) struct ContextLayer {
    pub(super) rewrite: ContextRewrite,
    pub(super) outer: Option<Arc<Self>>,
}

impl ContextLayer {
    /// The rewrites of all layers, innermost first.
    pub(super) fn rewrites(first: Option<&Self>) -> impl Iterator<Item = &ContextRewrite> {
        successors(first, |passing| passing.outer.as_deref()).map(|passing| &passing.rewrite)
    }
}

/// Applies the rewrites of the layers to an event. `None` if a layer drops it.
pub(super) fn rewrite_event(first: Option<&ContextLayer>, event: Event) -> Option<Event> {
    ContextLayer::rewrites(first).try_fold(event, |event, change| match change {
        ContextRewrite::Event(change) => change(event),
        ContextRewrite::Question(_) | ContextRewrite::Refusal(_) => Some(event),
    })
}

/// The rewrite of one layer.
pub(super) enum ContextRewrite {
    /// Changes or drops an event.
    Event(Box<dyn Fn(Event) -> Option<Event> + Send + Sync>),
    /// Changes an input request.
    Question(Box<dyn Fn(InputRequest) -> InputRequest + Send + Sync>),
    /// Refuses an input request with the reason.
    Refusal(Box<CheckInputRequest>),
}

/// Returns the reason why an input request is refused.
type CheckInputRequest = dyn Fn(&InputRequest) -> Result<(), String> + Send + Sync;
