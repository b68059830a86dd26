//! Requests to an upstream, as the telemetry sees them.

use std::sync::Arc;
use std::time::Instant;

use creole::Context;
use creole::client::Address;
use creole::internal::telemetry::trace::{OutgoingTrace, ReceivedTrace, ReplicaTrace, SpanId};
use creole::internal::telemetry::{
    CallOutcome, CallRecord, ErrorType, FrameTap, ParkedEnd, RecordGuard, StepGuard, StepKind,
    Translation, Transport,
};
use creole::proto::operation::{Operation, Outcome};
use creole::proto::revision::{InputRequestStyle, Rules};

use crate::upstream::settings::UpstreamSettings;

/// A request to an upstream. Dropping it means that nobody waits for the response any more.
pub(crate) struct ObservedRequest {
    /// The step in the record of the call, if the call is recorded.
    step: Option<Box<StepGuard>>,
}

impl ObservedRequest {
    /// A request for a caller.
    pub(crate) fn for_call(
        settings: &UpstreamSettings,
        context: &Context,
        operation: &Operation,
        rules: &'static Rules,
    ) -> Self {
        let translation = || translation(context, rules);
        let kind = || request_step(settings, operation, rules, translation());
        Self::of_step(context.start_step(kind))
    }

    /// The next round of a request that was parked. The upstream's revision is not known here.
    pub(crate) fn for_parked_call(
        settings: &UpstreamSettings,
        context: &Context,
        operation: &Operation,
    ) -> Self {
        let rules = Rules::NEWEST_HANDSHAKE;
        let kind = || request_step(settings, operation, rules, Translation::Parked);
        Self::of_step(context.start_step(kind))
    }

    /// A request of the gateway itself.
    pub(crate) fn for_gateway(
        settings: &UpstreamSettings,
        work: Option<&RecordGuard>,
        operation: &Operation,
        rules: &'static Rules,
    ) -> Self {
        let kind = || request_step(settings, operation, rules, Translation::None);
        Self::of_step(work.map(|work| work.record().start_step(kind(), None)))
    }

    fn of_step(step: Option<StepGuard>) -> Self {
        let step = step.map(|mut step| {
            step.set_error(Some(ErrorType::Cancelled));
            Box::new(step)
        });
        Self { step }
    }

    /// The trace context that the upstream gets with the request.
    pub(crate) fn trace(&self, settings: &UpstreamSettings, context: &Context) -> OutgoingTrace {
        let span = self.step.as_deref().and_then(StepGuard::span_id);
        context.trace_for_upstream(span, &settings.propagation)
    }

    /// The trace context that the upstream gets with a request of the gateway itself: its span, if it is sampled.
    pub(crate) fn own_trace(&self, settings: &UpstreamSettings) -> OutgoingTrace {
        let Some(step) = &self.step else { return OutgoingTrace::default() };
        let trace = step.record().trace.as_ref();
        let span = trace
            .zip(step.span_id())
            .and_then(|(trace, id)| Some((trace.context_of(id)?, trace.tracestate.as_deref())));
        let received = ReceivedTrace { is_tracing: true, span, ..ReceivedTrace::default() };
        received.to_upstream(&settings.propagation)
    }

    /// Where the messages of the request go, if a reader wants them.
    pub(crate) fn frame_tap(&self) -> Option<FrameTap> {
        self.step.as_ref()?.frame_tap()
    }

    /// The place in the record of the call, for those who continue the request.
    pub(crate) fn place(&self) -> Option<StepPlace> {
        let step = self.step.as_ref()?;
        let (record, tap) = (Arc::clone(step.record()), step.frame_tap());
        Some(StepPlace { record, step: step.index(), span: step.span_id(), tap })
    }

    /// The request got its response, or failed.
    pub(crate) fn end(self, outcome: &Outcome) {
        let Some(step) = self.step else { return };
        let seen = CallOutcome::of(outcome, |fault| fault.foreign_code);
        let foreign = match outcome {
            Outcome::Fail(fault) => fault.foreign_code,
            _ => None,
        };
        let is_parked = |translation: Translation| {
            translation == Translation::Lowered && seen == CallOutcome::InputRequired
        };
        step.change(|kind| {
            if let StepKind::UpstreamRequest { code, translation, .. } = kind {
                *code = foreign;
                if is_parked(*translation) {
                    *translation = Translation::Parked;
                }
            }
        });
        step.end(foreign.map(ErrorType::Code).or(seen.error()));
    }
}

/// The step of a request in the record of its call.
pub(crate) struct StepPlace {
    record: Arc<CallRecord>,
    step: Option<u16>,
    span: Option<SpanId>,
    tap: Option<FrameTap>,
}

impl StepPlace {
    /// The place of a request of another replica, which has the record of the call.
    pub(crate) fn of_replica_request(work: &RecordGuard) -> Self {
        Self { record: Arc::clone(work.record()), step: None, span: None, tap: None }
    }

    /// The place in the trace, for the replica that continues the request.
    pub(crate) fn replica_trace(&self) -> Option<ReplicaTrace> {
        ReplicaTrace::of(self.record.trace.as_ref()?, self.span?)
    }

    /// Where the messages go, if a reader wants them.
    pub(crate) fn frame_tap(&self) -> Option<FrameTap> {
        self.tap.clone()
    }

    /// Sets the rules of the upstream, now that they are known.
    pub(crate) fn set_rules(&self, known: &'static Rules) {
        self.record.change_step(self.step, |kind| {
            if let StepKind::UpstreamRequest { rules, .. } = kind {
                *rules = known;
            }
        });
    }

    /// Records that the request was parked since this time, and how that ended.
    pub(crate) fn add_parked(&self, since: Instant, end: ParkedEnd) {
        self.record.add_step(StepKind::Parked { end }, None, since, None);
    }
}

/// How a call is translated for an upstream with these rules.
fn translation(context: &Context, upstream: &Rules) -> Translation {
    let caller = context.caller().rules;
    if caller.input_request_style == upstream.input_request_style {
        return Translation::None;
    }
    match upstream.input_request_style {
        InputRequestStyle::Inline => Translation::Lowered,
        // The caller was asked, and the upstream is called again with the responses.
        InputRequestStyle::MultiRoundTrip if context.input_responses().next().is_some() => {
            Translation::Driven
        }
        InputRequestStyle::MultiRoundTrip => Translation::Raised,
    }
}

/// The host and the port of an upstream. A user in its URL, and the command line of a program, are secrets.
fn server_address(address: &Address) -> Option<(Arc<str>, u16)> {
    let Address::Http(target) = address else { return None };
    let url = target.url();
    let default = if url.scheme_str() == Some("https") { 443 } else { 80 };
    let host = url.host()?.trim_start_matches('[').trim_end_matches(']');
    Some((host.into(), url.port_u16().unwrap_or(default)))
}

fn request_step(
    settings: &UpstreamSettings,
    operation: &Operation,
    rules: &'static Rules,
    translation: Translation,
) -> StepKind {
    StepKind::UpstreamRequest {
        upstream: settings.name().into(),
        method: operation.method(),
        target: operation.target().into(),
        rules,
        transport: match settings.address {
            Address::Child(_) => Transport::Pipe,
            Address::Http(_) => Transport::Http { version: "1.1" },
        },
        server: server_address(&settings.address),
        translation,
        code: None,
    }
}
