//! The place in a trace that a request to another replica carries.

use serde::{Deserialize, Serialize};

use super::call_trace::CallTrace;
use super::context::{SpanId, TraceContext, is_tracestate};
use super::ids::new_span_id;

/// The place of a sampled call in a trace, as another replica gets it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaTrace {
    /// The span of the request to the other replica, as `traceparent`.
    parent: String,
    /// `tracestate` of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The first round of the call, as `traceparent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_round: Option<String>,
}

impl ReplicaTrace {
    /// The place of a span of this call. `None` if the call is not sampled.
    pub fn of(trace: &CallTrace, span: SpanId) -> Option<Self> {
        Some(Self {
            parent: trace.context_of(span)?.to_text(),
            state: trace.tracestate.as_deref().map(str::to_owned),
            first_round: trace.first_round().map(|first| first.to_text()),
        })
    }

    /// The trace of the work of the replica that gets it. `None` if a part is malformed.
    pub(in crate::telemetry) fn into_work(self) -> Option<CallTrace> {
        let parent = TraceContext::parse(self.parent.as_bytes())?;
        let trace = CallTrace {
            trace_id: parent.trace_id,
            span_id: new_span_id(),
            parent: Some(parent.span_id),
            is_sampled: true,
            tracestate: self.state.filter(|state| is_tracestate(state)).map(Into::into),
            ..CallTrace::default()
        };
        let first = self.first_round.and_then(|text| TraceContext::parse(text.as_bytes()));
        first.into_iter().for_each(|first| trace.set_first_round(first));
        Some(trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_another_replica_is_a_child_and_knows_the_first_round() {
        let (own, span) = (TraceContext::sampled([1; 16], [2; 8]), [3; 8]);
        let call = CallTrace {
            trace_id: own.trace_id,
            span_id: own.span_id,
            is_sampled: true,
            tracestate: Some("a=1".into()),
            ..CallTrace::default()
        };
        let first = TraceContext::sampled([1; 16], [4; 8]);
        call.set_first_round(first);
        let work = ReplicaTrace::of(&call, span).unwrap().into_work().unwrap();
        assert_eq!((work.trace_id, work.parent), ([1; 16], Some(span)));
        assert_eq!((work.tracestate.as_deref(), work.first_round()), (Some("a=1"), Some(&first)));
        assert!(work.is_sampled && ![own.span_id, span].contains(&work.span_id));
        let unsampled = CallTrace { is_sampled: false, ..call };
        assert_eq!(ReplicaTrace::of(&unsampled, span), None);
    }

    #[test]
    fn a_malformed_place_is_none() {
        let parent = "00-1".to_owned();
        assert_eq!(ReplicaTrace { parent, state: None, first_round: None }.into_work(), None);
    }
}
