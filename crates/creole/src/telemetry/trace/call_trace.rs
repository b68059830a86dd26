//! The place of one call in a trace.

use std::sync::OnceLock;

use super::context::{Link, SpanId, TraceContext, TraceId};
use super::ids::{new_span_id, new_trace_id};

/// The maximum number of links of one call.
pub const MAX_LINKS: usize = 16;

/// The place of one call in a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// The trace: of an unsampled call that of the client.
    pub trace_id: TraceId,
    /// The span of the call; zero if the call is not sampled.
    pub span_id: SpanId,
    /// The span of the client that is the parent.
    pub parent: Option<SpanId>,
    /// Spans of other traces, such as those of a client that is not trusted.
    pub links: Vec<Link>,
    /// Whether spans are recorded.
    pub is_sampled: bool,
    /// `tracestate` of the trace.
    pub tracestate: Option<Box<str>>,
    /// The first round of a multi-round-trip request, once a later one has read its request state.
    pub(super) first_round: OnceLock<Link>,
}

impl CallTrace {
    /// The span of the call, if the call is sampled.
    pub fn context(&self) -> Option<TraceContext> {
        self.is_sampled.then(|| TraceContext::sampled(self.trace_id, self.span_id))
    }

    /// A span of the call as a context for others.
    pub fn context_of(&self, span: SpanId) -> Option<TraceContext> {
        self.is_sampled.then(|| TraceContext::sampled(self.trace_id, span))
    }

    /// The trace of work that goes on after this call, such as that of its task: a trace of its own, linked to the call.
    pub fn follow_up(&self) -> Option<Self> {
        let links = vec![self.context()?];
        let (trace_id, span_id) = (new_trace_id(), new_span_id());
        Some(Self { trace_id, span_id, links, is_sampled: true, ..Self::default() })
    }

    /// Records the first round of the request that this call continues.
    pub fn set_first_round(&self, first: Link) {
        // The first round of a request never changes.
        _ = self.first_round.set(first);
    }

    /// The first round of the request that this call continues.
    pub fn first_round(&self) -> Option<&Link> {
        self.first_round.get()
    }

    /// All links.
    pub fn all_links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().chain(self.first_round()).take(MAX_LINKS)
    }
}
