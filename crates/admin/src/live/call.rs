//! Calls as the API shows them.

use creole::internal::telemetry::{
    CallOutcome, CallRecord, ParkedEnd, Step, StepKind, Translation, Transport,
};
use creole_proto::wire::hex;
use schemars::JsonSchema;
use serde::Serialize;

use crate::clock;

/// A call, without its steps.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CallSummary {
    /// Its id.
    pub(crate) id: String,
    /// When it started.
    pub(crate) started: String,
    /// The server.
    pub(crate) server: String,
    /// The upstream that it was sent to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream: Option<String>,
    /// The method.
    pub(crate) method: String,
    /// The tool, prompt or URI.
    pub(crate) target: String,
    /// Who called.
    pub(crate) principal: String,
    /// What the client says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client: Option<Program>,
    /// The start of the digest of its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The revision of the client.
    pub(crate) revision: String,
    /// The revision of the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_revision: Option<String>,
    /// `stdio` or `http`.
    pub(crate) transport: &'static str,
    /// Where it came from: `mcp`, `console`, `rest`, `run_code`, `cli` or `gateway`.
    pub(crate) via: &'static str,
    /// How it was translated between the eras: `none`, `raised`, `lowered`, `parked` or `driven`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) translation: Option<&'static str>,
    /// `active` or `ended`.
    pub(crate) state: &'static str,
    /// How it ended: `success`, `tool_error`, `fault`, `input_required`, `task` or `cancelled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    /// The kind of the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<&'static str>,
    /// The code of the error that the client got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<i64>,
    /// The layer, and the rule if there is one, that refused it: `policy:no-writes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) denied_by: Option<String>,
    /// How long it took, or has taken until now.
    pub(crate) duration_ms: f64,
    /// Its trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    /// The call that this one continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) continues: Option<String>,
    /// Whether its payloads were captured.
    pub(crate) has_payloads: bool,
}

/// A program and its version.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Program {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
}

/// A call with its steps.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CallSteps {
    #[serde(flatten)]
    pub(crate) summary: CallSummary,
    /// The client's id of the request, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    /// The address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<String>,
    /// What happened, in the order of the start.
    pub(crate) steps: Vec<StepView>,
}

/// One step of a call.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StepView {
    /// Its number.
    index: u16,
    /// The step that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u16>,
    /// When it started, since the start of the call.
    start_ms: f64,
    /// How long it took, or has taken until now.
    duration_ms: f64,
    /// Whether it has not ended.
    active: bool,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    kind: StepKindView,
}

/// What happened in a step.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StepKindView {
    /// A layer of a chain handled the call.
    Layer {
        /// Its kind.
        layer: &'static str,
        /// `passed`, `refused`, `answered`, `changed` or `retried`.
        decision: &'static str,
        /// How often it passed the call on.
        attempts: u16,
    },
    /// A request was sent to an upstream.
    UpstreamRequest {
        /// The upstream.
        upstream: String,
        /// The method.
        method: &'static str,
        /// The upstream's own name of the tool or prompt, or the URI.
        target: String,
        /// The revision of the upstream.
        revision: String,
        /// `stdio` or `http`.
        transport: &'static str,
        /// `none`, `raised`, `lowered`, `parked` or `driven`.
        translation: &'static str,
        /// The code of the upstream's error.
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<i64>,
    },
    /// An input request was sent to the client.
    InputRequest {
        /// Its method.
        input: &'static str,
        /// The round of the call, from 1.
        round: u16,
    },
    /// The call of an upstream waited for the client.
    Parked {
        /// `resumed`, `expired`, `taken_over` or `lost`.
        end: &'static str,
    },
    /// An upstream was started or connected to.
    UpstreamStart {
        /// The upstream.
        upstream: String,
        /// The number of the attempt, from 1.
        attempt: u32,
    },
}

impl From<&CallRecord> for CallSummary {
    fn from(record: &CallRecord) -> Self {
        Self::new(record, &record.steps())
    }
}

impl CallSummary {
    fn new(record: &CallRecord, steps: &[Step]) -> Self {
        let requests = || steps.iter().filter_map(UpstreamPart::of);
        let (end, last) = (record.end(), requests().next_back());
        let outcome = end.map(|end| end.outcome);
        let (fault, code) = match outcome {
            Some(CallOutcome::Fault(kind, code)) => (Some(kind.name()), code),
            _ => (None, None),
        };
        Self {
            id: record.id_text(),
            started: clock::text(record.started_at),
            server: record.server.to_string(),
            upstream: last.as_ref().map(|last| last.upstream.to_owned()),
            method: record.method.to_owned(),
            target: record.target.to_string(),
            principal: record.principal.id().to_owned(),
            client: record.client.as_ref().map(|client| Program {
                name: client.name.to_string(),
                version: client.version.to_string(),
            }),
            session: record.session.map(|session| hex(&session)),
            revision: record.rules.name.to_owned(),
            upstream_revision: last.as_ref().map(|last| last.revision.to_owned()),
            transport: transport(record.transport),
            via: record.via.name(),
            translation: last.as_ref().map(|_| strongest_translation(requests())),
            state: if end.is_some() { "ended" } else { "active" },
            outcome: outcome.map(CallOutcome::name),
            fault,
            code,
            denied_by: denied_by(record, steps),
            duration_ms: clock::ms(record.duration()),
            trace: record.trace.as_ref().map(|trace| hex(&trace.trace_id)),
            continues: record.continues().map(|earlier| format!("{:032x}", earlier.id)),
            has_payloads: false,
        }
    }
}

impl From<&CallRecord> for CallSteps {
    fn from(record: &CallRecord) -> Self {
        let steps = record.steps();
        Self {
            summary: CallSummary::new(record, &steps),
            request_id: record.request_id.as_deref().map(str::to_owned),
            remote: record.remote.map(|remote| remote.to_string()),
            steps: steps.iter().map(StepView::from).collect(),
        }
    }
}

impl CallSteps {
    /// The upstreams that the call was sent to. One may occur several times.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.kind {
            StepKindView::UpstreamRequest { upstream, .. } => Some(upstream.as_str()),
            _ => None,
        })
    }
}

/// A request to an upstream among the steps.
struct UpstreamPart<'a> {
    upstream: &'a str,
    revision: &'static str,
    translation: Translation,
}

impl<'a> UpstreamPart<'a> {
    fn of(step: &'a Step) -> Option<Self> {
        match &step.kind {
            StepKind::UpstreamRequest { upstream, rules, translation, .. } => {
                let revision = rules.name;
                Some(Self { upstream, revision, translation: *translation })
            }
            _ => None,
        }
    }
}

/// The translation that did most: a parked call is also lowered.
fn strongest_translation<'a>(requests: impl Iterator<Item = UpstreamPart<'a>>) -> &'static str {
    let weight = |translation: &Translation| match translation {
        Translation::None => 0,
        Translation::Raised | Translation::Lowered => 1,
        Translation::Parked | Translation::Driven => 2,
    };
    let translations = requests.map(|request| request.translation);
    translations.max_by_key(weight).unwrap_or(Translation::None).name()
}

/// The layer that refused the call, with the rule of a policy.
pub(crate) fn denied_by(record: &CallRecord, steps: &[Step]) -> Option<String> {
    let end = record.end()?;
    let layer = refusing_layer(record, steps);
    match (&end.denied_by, layer) {
        (Some(rule), Some(layer)) => Some(format!("{layer}:{rule}")),
        (Some(rule), None) => Some(format!("policy:{rule}")),
        (None, layer) => layer,
    }
}

/// The innermost layer that refused the call, if it failed.
pub(crate) fn refusing_layer(record: &CallRecord, steps: &[Step]) -> Option<String> {
    let end = record.end()?;
    let is_failure = matches!(end.outcome, CallOutcome::Fault(..) | CallOutcome::ToolError);
    let refused = |step: &Step| match &step.kind {
        StepKind::Layer {
            kind,
            decision: creole::internal::telemetry::Decision::Refused,
            attempts: 0,
        } => Some((*kind).to_owned()),
        _ => None,
    };
    steps.iter().rev().find_map(refused).filter(|_| is_failure)
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Pipe => "stdio",
        Transport::Http { .. } => "http",
    }
}

impl From<&Step> for StepView {
    fn from(step: &Step) -> Self {
        Self {
            index: step.index,
            parent: step.parent,
            start_ms: clock::ms(step.start),
            duration_ms: clock::ms(step.duration),
            active: !step.is_ended,
            error: step.error.map(|error| error.name().into_owned()),
            kind: StepKindView::from(&step.kind),
        }
    }
}

impl From<&StepKind> for StepKindView {
    fn from(kind: &StepKind) -> Self {
        match kind {
            StepKind::Layer { kind, decision, attempts } => {
                Self::Layer { layer: kind, decision: decision.name(), attempts: *attempts }
            }
            StepKind::UpstreamRequest {
                upstream,
                method,
                target,
                rules,
                transport: over,
                translation,
                code,
                ..
            } => Self::UpstreamRequest {
                upstream: upstream.to_string(),
                method,
                target: target.to_string(),
                revision: rules.name.to_owned(),
                transport: transport(*over),
                translation: translation.name(),
                code: *code,
            },
            StepKind::InputRequest { kind, round } => {
                Self::InputRequest { input: kind, round: *round }
            }
            StepKind::Parked { end } => Self::Parked { end: ParkedEnd::name(*end) },
            StepKind::UpstreamStart { upstream, attempt } => {
                Self::UpstreamStart { upstream: upstream.to_string(), attempt: *attempt }
            }
        }
    }
}
