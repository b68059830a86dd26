//! Spans: the record of a call becomes a span of the server, and its steps become spans within it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole::internal::seal::digest;
use creole::internal::telemetry::trace::{Link, SpanId, TraceId, hex, new_span_id, new_trace_id};
use creole::internal::telemetry::{
    CallOutcome, CallRecord, Decision, ErrorType, Step, StepKind, Transport, Via,
};
use creole::proto::revision::Rules;
use creole::proto::wire::unquote;
use opentelemetry_proto::tonic::trace::v1::span::{Link as LinkMessage, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags, Status};

use super::attributes::{Attributes, shorten};
use super::batches::MakeMessages;
use super::encode::{Sender, unix_nanos};
use super::payload::add_payloads;
use super::settings::{PrincipalNames, SpanSettings};
use crate::semconv;

/// The time that a layer may take by itself without a span of its own.
const QUICK_LAYER: Duration = Duration::from_millis(1);

/// The maximum length of a span's name in bytes.
const MAX_NAME: usize = 256;

/// The codes of errors that a client caused. The conventions do not count them as errors of a server.
const CLIENT_ERRORS: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];

/// Whether the server failed. A client that asks for something unknown, and one that leaves, is no failure.
pub(super) fn is_failure(outcome: CallOutcome) -> bool {
    match outcome {
        CallOutcome::ToolError | CallOutcome::Fault(_, None) => true,
        CallOutcome::Fault(_, Some(code)) => !CLIENT_ERRORS.contains(&code),
        CallOutcome::Success
        | CallOutcome::InputRequired
        | CallOutcome::Task
        | CallOutcome::Cancelled => false,
    }
}

/// Makes requests of the records of calls.
pub(super) struct SpanMessages {
    pub(super) sender: Sender,
    pub(super) settings: SpanSettings,
}

/// A call that has ended, with its steps. Those of a call that was not sampled are left out.
pub(super) struct FinishedCall {
    record: Arc<CallRecord>,
    steps: Vec<Step>,
}

impl FinishedCall {
    pub(super) fn new(record: &Arc<CallRecord>) -> Self {
        let is_sampled = record.trace.as_ref().is_some_and(|trace| trace.is_sampled);
        let steps = if is_sampled { record.steps() } else { Vec::new() };
        Self { record: Arc::clone(record), steps }
    }

    /// The number of its spans.
    pub(super) fn span_count(&self) -> usize {
        let inner = inner_durations(&self.steps);
        let shown = self.steps.iter().zip(inner).filter(|(step, inner)| is_shown(step, *inner));
        usize::from(has_server_span(&self.record)) + shown.count()
    }
}

impl MakeMessages for SpanMessages {
    type Item = FinishedCall;
    type Message = Span;

    fn messages(&mut self, call: FinishedCall, into: &mut Vec<Span>) {
        CallSpans::new(&call.record, &self.settings).add_to(&call.steps, into);
    }

    fn request(&mut self, messages: Vec<Span>) -> Vec<u8> {
        self.sender.spans(messages)
    }
}

/// The spans of one call.
struct CallSpans<'a> {
    record: &'a CallRecord,
    settings: &'a SpanSettings,
    trace_id: TraceId,
    span_id: SpanId,
    parent: Option<SpanId>,
    links: Vec<Link>,
}

impl<'a> CallSpans<'a> {
    fn new(record: &'a CallRecord, settings: &'a SpanSettings) -> Self {
        let trace = record.trace.as_ref();
        let is_sampled = trace.is_some_and(|trace| trace.is_sampled);
        // A call that was not sampled gets its ids now. It stays in the trace of a trusted client.
        let parent = trace.and_then(|trace| trace.parent);
        let known = trace.filter(|_| is_sampled || parent.is_some());
        let trace_id = known.map_or_else(new_trace_id, |trace| trace.trace_id);
        let span_id = trace.filter(|_| is_sampled).map_or_else(new_span_id, |trace| trace.span_id);
        let links = trace.map(|trace| trace.all_links().copied().collect()).unwrap_or_default();
        Self { record, settings, trace_id, span_id, parent, links }
    }

    fn add_to(&self, steps: &[Step], into: &mut Vec<Span>) {
        let has_server_span = has_server_span(self.record);
        if has_server_span {
            into.push(self.server_span());
        }
        let ids = span_ids(steps, self.span_id);
        for (step, id) in steps.iter().zip(&ids.own) {
            if let Some(id) = id {
                let is_root = !has_server_span && step.parent.is_none();
                let parent = Some(ids.parent_of(step)).filter(|_| !is_root);
                into.push(self.step_span(step, *id, parent));
            }
        }
    }

    /// The span of the request.
    fn server_span(&self) -> Span {
        let record = self.record;
        if record.via == Via::Replica {
            return self.replica_span();
        }
        let mut attributes = Attributes::default();
        add_request(&mut attributes, record.method, &record.target, record.rules);
        add_transport(&mut attributes, record.transport);
        attributes.text(semconv::SERVER, &record.server);
        if record.via != Via::Mcp {
            attributes.text(semconv::VIA, record.via.name());
        }
        if let Some(id) = &record.request_id {
            attributes.text(semconv::REQUEST_ID, &unquote(id).unwrap_or((&**id).into()));
        }
        let is_http = matches!(record.transport, Transport::Http { .. });
        if let Some(session) = record.session.filter(|_| is_http && record.rules.has_sessions) {
            attributes.text(semconv::SESSION_ID, &hex(&session));
        }
        self.add_principal(&mut attributes);
        if self.settings.has_payloads && record.method == "tools/call" {
            add_payloads(record, &mut attributes);
        }
        let status = self.add_outcome(&mut attributes);
        let duration = record.duration();
        let span = Span {
            parent_span_id: self.parent.map(|id| id.to_vec()).unwrap_or_default(),
            links: self.links.iter().map(|link| link_message(*link)).collect(),
            flags: flags(self.parent.is_some()),
            status,
            ..self.span(SpanKind::Server, self.span_id, record.started_at, duration)
        };
        Span {
            name: span_name(record.method, &record.target),
            attributes: attributes.into_list(),
            ..span
        }
    }

    /// The span of a request of another replica, which has the span of the client's request.
    fn replica_span(&self) -> Span {
        let record = self.record;
        let mut attributes = Attributes::default();
        add_request(&mut attributes, record.method, &record.target, record.rules);
        attributes.text(semconv::VIA, record.via.name());
        let status = self.add_outcome(&mut attributes);
        let span =
            self.span(SpanKind::Internal, self.span_id, record.started_at, record.duration());
        Span {
            name: "replica request".to_owned(),
            attributes: attributes.into_list(),
            parent_span_id: self.parent.map(|id| id.to_vec()).unwrap_or_default(),
            links: self.links.iter().map(|link| link_message(*link)).collect(),
            flags: flags(self.parent.is_some()),
            status,
            ..span
        }
    }

    fn add_principal(&self, attributes: &mut Attributes) {
        let principal = &self.record.principal;
        match self.settings.principals {
            PrincipalNames::None => {}
            PrincipalNames::Hash => {
                let hash = digest(principal.identity().as_bytes());
                attributes.text(semconv::PRINCIPAL, &hex(&hash[..8]));
            }
            PrincipalNames::Name => {
                attributes.text(semconv::PRINCIPAL, principal.id());
                if let Some(remote) = self.record.remote {
                    attributes.text(semconv::CLIENT_ADDRESS, &remote.to_string());
                }
            }
        }
    }

    /// Adds how the call ended. An error that the client caused is no error of the server.
    fn add_outcome(&self, attributes: &mut Attributes) -> Option<Status> {
        let end = self.record.end()?;
        if let Some(rule) = &end.denied_by {
            attributes.text(semconv::DENIED_BY, rule);
        }
        match end.outcome {
            CallOutcome::Success => None,
            CallOutcome::InputRequired | CallOutcome::Task | CallOutcome::Cancelled => {
                attributes.text(semconv::OUTCOME, end.outcome.name());
                None
            }
            CallOutcome::ToolError | CallOutcome::Fault(_, None) => {
                attributes.text(semconv::ERROR_TYPE, "tool_error");
                Some(failed(""))
            }
            CallOutcome::Fault(kind, Some(code)) => {
                attributes.text(semconv::STATUS_CODE, &code.to_string());
                if CLIENT_ERRORS.contains(&code) {
                    return None;
                }
                attributes.text(semconv::ERROR_TYPE, &code.to_string());
                Some(failed(kind.name()))
            }
        }
    }

    /// The span of a step.
    fn step_span(&self, step: &Step, id: SpanId, parent: Option<SpanId>) -> Span {
        let mut attributes = Attributes::default();
        let mut error = step.error.map(|error| error.name().into_owned());
        let (kind, name) = match &step.kind {
            StepKind::Layer { kind, decision, attempts } => {
                attributes.text(semconv::LAYER, kind);
                attributes.text(semconv::DECISION, decision.name());
                if *attempts > 1 {
                    attributes.number(semconv::ATTEMPT, i64::from(*attempts));
                }
                // The layer did what it is for. The server's span has the outcome.
                error = None;
                (SpanKind::Internal, format!("layer {kind}"))
            }
            StepKind::UpstreamRequest {
                upstream,
                method,
                target,
                rules,
                transport,
                server,
                translation,
                code,
            } => {
                add_request(&mut attributes, method, target, rules);
                add_transport(&mut attributes, *transport);
                if let Some((host, port)) = server {
                    attributes.text(semconv::SERVER_ADDRESS, host);
                    attributes.number(semconv::SERVER_PORT, i64::from(*port));
                }
                attributes.text(semconv::UPSTREAM, upstream);
                attributes.text(semconv::TRANSLATION, translation.name());
                if let Some(code) = code {
                    attributes.text(semconv::STATUS_CODE, &code.to_string());
                    // On this side every code is an error.
                    error = Some(code.to_string());
                }
                (SpanKind::Client, span_name(method, target))
            }
            StepKind::InputRequest { kind, round } => {
                attributes.text(semconv::METHOD, kind);
                attributes.number(semconv::ROUND, i64::from(*round));
                (SpanKind::Client, (*kind).to_owned())
            }
            StepKind::Parked { end } => {
                attributes.text(semconv::PARKED_END, end.name());
                (SpanKind::Internal, "parked".to_owned())
            }
            StepKind::UpstreamStart { upstream, attempt } => {
                attributes.text(semconv::UPSTREAM, upstream);
                attributes.number(semconv::ATTEMPT, i64::from(*attempt));
                (SpanKind::Internal, "upstream start".to_owned())
            }
        };
        attributes.optional_text(semconv::ERROR_TYPE, error.as_deref());
        let is_parked = matches!(step.kind, StepKind::Parked { .. });
        let start = match is_parked {
            // It lies before the call.
            true => self.record.started_at.checked_sub(step.duration),
            false => self.record.started_at.checked_add(step.start),
        };
        let start = start.unwrap_or(self.record.started_at);
        let own = Link::sampled(self.trace_id, self.span_id);
        let first = self.record.trace.as_ref().and_then(|trace| trace.first_round());
        let rounds = first.into_iter().chain([&own]).filter(|_| is_parked);
        Span {
            name,
            attributes: attributes.into_list(),
            parent_span_id: parent.map(|id| id.to_vec()).unwrap_or_default(),
            links: rounds.map(|link| link_message(*link)).collect(),
            flags: flags(false),
            status: error.map(|_| failed(step.error.map_or("", status_text))),
            ..self.span(kind, id, start, step.duration)
        }
    }

    /// A span with its ids and its times.
    fn span(&self, kind: SpanKind, id: SpanId, start: SystemTime, duration: Duration) -> Span {
        let start = unix_nanos(start);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let trace = self.record.trace.as_ref().filter(|trace| trace.parent.is_some());
        let state = trace.and_then(|trace| trace.tracestate.as_deref());
        Span {
            trace_id: self.trace_id.to_vec(),
            span_id: id.to_vec(),
            trace_state: state.unwrap_or_default().to_owned(),
            kind: kind.into(),
            start_time_unix_nano: start,
            end_time_unix_nano: start.saturating_add(nanos),
            ..Span::default()
        }
    }
}

/// The spans of steps.
struct StepIds {
    /// The span of each step that has one.
    own: Vec<Option<SpanId>>,
    /// The span that contains each step: that of the step itself, of the next step around it, or of the call.
    around: Vec<SpanId>,
    root: SpanId,
}

impl StepIds {
    fn parent_of(&self, step: &Step) -> SpanId {
        step.parent
            .and_then(|parent| self.around.get(usize::from(parent)))
            .copied()
            .unwrap_or(self.root)
    }
}

/// Whether a call has a span of its own. Work of the gateway itself has no request: only its steps are spans.
fn has_server_span(record: &CallRecord) -> bool {
    record.via != Via::Gateway
}

/// How long the parts of each step took.
fn inner_durations(steps: &[Step]) -> Vec<Duration> {
    let mut inner = vec![Duration::ZERO; steps.len()];
    for step in steps {
        if let Some(parent) = step.parent.and_then(|parent| inner.get_mut(usize::from(parent))) {
            *parent += step.duration;
        }
    }
    inner
}

/// Decides which steps become spans.
fn span_ids(steps: &[Step], root: SpanId) -> StepIds {
    let inner = inner_durations(steps);
    let mut ids = StepIds { own: Vec::new(), around: Vec::new(), root };
    // A step is behind the one that it is a part of.
    for (step, inner) in steps.iter().zip(inner) {
        let id = is_shown(step, inner).then(|| step.span_id.unwrap_or_else(new_span_id));
        let around = id.unwrap_or_else(|| ids.parent_of(step));
        ids.own.push(id);
        ids.around.push(around);
    }
    ids
}

/// Whether a step becomes a span. A layer that only passed the call on does not, if it took no time itself.
fn is_shown(step: &Step, inner: Duration) -> bool {
    match step.kind {
        StepKind::Layer { decision: Decision::Passed, .. } => {
            // Its tool or upstream may have no span.
            step.duration.saturating_sub(inner.max(step.passed)) > QUICK_LAYER
        }
        _ => true,
    }
}

/// The name of a span: the method, and the tool or prompt. A URI is not part of it: there are too many.
fn span_name(method: &str, target: &str) -> String {
    match method {
        "tools/call" | "prompts/get" if !target.is_empty() => {
            format!("{method} {}", shorten(target, MAX_NAME))
        }
        method => method.to_owned(),
    }
}

fn add_request(attributes: &mut Attributes, method: &str, target: &str, rules: &Rules) {
    attributes.text(semconv::METHOD, method);
    attributes.text(semconv::PROTOCOL_VERSION, rules.name);
    attributes.text(semconv::ERA, rules.era.name());
    match method {
        "tools/call" => {
            attributes.text(semconv::TOOL, target);
            attributes.text(semconv::OPERATION, semconv::EXECUTE_TOOL);
        }
        "prompts/get" => attributes.text(semconv::PROMPT, target),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            attributes.text(semconv::RESOURCE_URI, target);
        }
        _ => {}
    }
}

fn add_transport(attributes: &mut Attributes, transport: Transport) {
    match transport {
        Transport::Pipe => attributes.text(semconv::NETWORK_TRANSPORT, "pipe"),
        Transport::Http { version } => {
            attributes.text(semconv::NETWORK_TRANSPORT, "tcp");
            attributes.text(semconv::NETWORK_PROTOCOL, "http");
            attributes.text(semconv::NETWORK_VERSION, version);
        }
    }
}

/// The status of a failed span. The text is ours: that of an upstream may contain secrets.
fn failed(text: &str) -> Status {
    Status { message: text.to_owned(), code: StatusCode::Error.into() }
}

fn status_text(error: ErrorType) -> &'static str {
    match error {
        ErrorType::Fault(kind) => kind.name(),
        ErrorType::ToolError | ErrorType::Code(_) | ErrorType::Cancelled => "",
    }
}

fn link_message(link: Link) -> LinkMessage {
    LinkMessage {
        trace_id: link.trace_id.to_vec(),
        span_id: link.span_id.to_vec(),
        flags: u32::from(link.flags),
        ..LinkMessage::default()
    }
}

/// The flags of a sampled span, and whether its parent is in another process.
fn flags(is_remote: bool) -> u32 {
    let known = SpanFlags::ContextHasIsRemoteMask as u32 | 1;
    if is_remote { known | SpanFlags::ContextIsRemoteMask as u32 } else { known }
}
