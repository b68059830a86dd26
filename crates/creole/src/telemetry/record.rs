//! The record of one call.

use std::fmt;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::Implementation;
use creole_proto::operation::{Outcome, Payload};
use creole_proto::revision::Rules;
use serde::{Deserialize, Serialize};

use crate::principal::Principal;
use crate::random::random_bytes;
use crate::sync::Mutex;
use crate::telemetry::frames::{CapturedFrame, FrameDirection, FrameRedactor, MAX_FRAMES};
use crate::telemetry::reader::{CallStart, Detail, RecordReader, interested};
use crate::telemetry::request::RequestFacts;
use crate::telemetry::steps::{Decision, ErrorType, MAX_STEPS, Step, StepGuard, StepKind};
use crate::telemetry::trace::{CallTrace, SpanId, new_span_id};

/// The maximum length of a target, in characters. It is the client's text.
const MAX_TARGET_CHARS: usize = 1024;

/// The transport of a client or an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Standard input and output, or another pair of streams of lines.
    #[default]
    Pipe,
    /// HTTP.
    Http {
        /// The version, such as `1.1` or `2`.
        version: &'static str,
    },
}

/// Where a call comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Via {
    /// A client of the protocol.
    #[default]
    Mcp,
    /// The console.
    Console,
    /// The REST interface.
    Rest,
    /// Code that a tool runs.
    RunCode,
    /// The command line.
    Cli,
    /// Nobody called: the gateway works for itself, such as when it fetches lists or starts an upstream.
    Gateway,
}

impl Via {
    /// The word for the audit log and the console.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Console => "console",
            Self::Rest => "rest",
            Self::RunCode => "run_code",
            Self::Cli => "cli",
            Self::Gateway => "gateway",
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Success,
    /// With a result in which the tool reports a failure.
    ToolError,
    /// With a fault of this kind, and with this code, unless the fault is part of a tool result.
    Fault(FaultKind, Option<i64>),
    /// With input requests, which the client answers in its next round.
    InputRequired,
    /// With a task.
    Task,
    /// Without a response: the client cancelled it or left.
    Cancelled,
}

impl CallOutcome {
    /// How a call with this outcome ended. `code` gives the code of a fault, unless it is part of a tool result.
    pub(crate) fn of(outcome: &Outcome, code: impl FnOnce(&Fault) -> Option<i64>) -> Self {
        match outcome {
            Outcome::Complete(Payload::Tool(result)) if result.is_error => Self::ToolError,
            Outcome::Complete(Payload::Relayed(relayed)) if relayed.is_error() => Self::ToolError,
            Outcome::Complete(Payload::TaskCreated(_)) | Outcome::Detach(_) => Self::Task,
            Outcome::Complete(_) => Self::Success,
            Outcome::InputRequired { .. } => Self::InputRequired,
            Outcome::Fail(fault) if fault.kind == FaultKind::ToolFailed => Self::ToolError,
            Outcome::Fail(fault) => Self::Fault(fault.kind, code(fault)),
        }
    }

    /// The word for the console and the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ToolError => "tool_error",
            Self::Fault(..) => "fault",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Cancelled => "cancelled",
        }
    }

    /// Why the call failed, if it did.
    pub fn error(self) -> Option<ErrorType> {
        match self {
            Self::ToolError => Some(ErrorType::ToolError),
            Self::Fault(kind, _) => Some(ErrorType::Fault(kind)),
            Self::Cancelled => Some(ErrorType::Cancelled),
            Self::Success | Self::InputRequired | Self::Task => None,
        }
    }
}

/// The end of a call.
#[derive(Clone, Debug)]
pub struct CallEnd {
    /// How long the call took.
    pub duration: Duration,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The rule of a policy that refused it.
    pub denied_by: Option<Arc<str>>,
}

/// The record of one call. Readers cannot change it.
pub struct CallRecord {
    /// Random; shown as 32 hexadecimal digits.
    pub id: u128,
    /// The name of the server. Empty for work of the gateway itself.
    pub server: Arc<str>,
    /// The method.
    pub method: &'static str,
    /// The tool, prompt or URI. It is the client's text. Empty if the method has none.
    pub target: Arc<str>,
    /// The rules of the client's revision.
    pub rules: &'static Rules,
    /// The client's transport.
    pub transport: Transport,
    /// The client's id of the request, as JSON.
    pub request_id: Option<Box<str>>,
    /// Who calls.
    pub principal: Principal,
    /// The start of the SHA-256 digest of the session's name.
    pub session: Option<[u8; 4]>,
    /// The client's address.
    pub remote: Option<IpAddr>,
    /// What the client says about itself.
    pub client: Option<Implementation>,
    /// Where the call comes from.
    pub via: Via,
    /// When it started.
    pub started_at: SystemTime,
    /// Its place in a trace, if calls are traced.
    pub trace: Option<CallTrace>,
    pub(super) started: Instant,
    pub(super) detail: Detail,
    pub(super) readers: Vec<Arc<dyn RecordReader>>,
    pub(super) redactor: Option<FrameRedactor>,
    pub(super) progress: CallProgress,
}

/// The call that another one continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierCall {
    /// The id of its record.
    pub id: u128,
    /// The number of its round, from 1.
    pub round: u16,
}

/// What a new record is made of.
pub(crate) struct NewRecord<'a, C> {
    pub(crate) server: &'a Arc<str>,
    pub(crate) method: &'static str,
    pub(crate) target: &'a str,
    pub(crate) rules: &'static Rules,
    pub(crate) principal: &'a Principal,
    pub(crate) facts: &'a RequestFacts,
    pub(crate) trace: Option<CallTrace>,
    pub(crate) client: C,
    pub(crate) earlier: Option<EarlierCall>,
    pub(crate) redactor: Option<&'a FrameRedactor>,
}

impl<C: FnOnce() -> Option<Implementation>> NewRecord<'_, C> {
    pub(super) fn start(&self) -> CallStart<'_> {
        CallStart {
            server: self.server,
            method: self.method,
            target: self.target,
            rules: self.rules,
            transport: self.facts.transport,
            principal: self.principal,
            via: self.facts.via,
            trace: self.trace.as_ref(),
        }
    }

    pub(super) fn into_record(
        self,
        readers: Vec<Arc<dyn RecordReader>>,
        detail: Detail,
    ) -> Arc<CallRecord> {
        Arc::new(CallRecord {
            id: CallRecord::new_id(),
            server: Arc::clone(self.server),
            method: self.method,
            target: self.target.chars().take(MAX_TARGET_CHARS).collect::<String>().into(),
            rules: self.rules,
            transport: self.facts.transport,
            request_id: self.facts.request_id.clone(),
            principal: self.principal.clone(),
            session: self.facts.session,
            remote: self.facts.remote,
            client: (self.client)(),
            via: self.facts.via,
            started_at: SystemTime::now(),
            trace: self.trace,
            started: Instant::now(),
            redactor: self.redactor.filter(|_| detail >= Detail::Frames).cloned(),
            detail,
            readers,
            progress: CallProgress {
                earlier: self.earlier.map(OnceLock::from).unwrap_or_default(),
                ..CallProgress::default()
            },
        })
    }
}

/// What changes in a record while the call runs.
#[derive(Default)]
pub(super) struct CallProgress {
    steps: Mutex<Vec<StepSlot>>,
    frames: Mutex<Vec<CapturedFrame>>,
    end: OnceLock<CallEnd>,
    earlier: OnceLock<EarlierCall>,
    /// Whether the end waits for the response's message.
    is_held: AtomicBool,
    is_reported: AtomicBool,
}

/// A step, and what tells the decision of a layer.
struct StepSlot {
    step: Step,
    started: Instant,
    /// How often the layer passed the call on.
    passes: u16,
    /// The last outcome that it got for that.
    passed: Option<CallOutcome>,
}

impl CallRecord {
    /// A new record id.
    pub(super) fn new_id() -> u128 {
        /// The random part of the ids of this process.
        static PROCESS: LazyLock<u128> = LazyLock::new(|| {
            random_bytes::<16>().map_or_else(|_| u128::from(process_number()), u128::from_ne_bytes)
        });
        static CALLS: AtomicU64 = AtomicU64::new(0);
        let number = CALLS.fetch_add(1, Ordering::Relaxed);
        // An odd factor: no two numbers give the same product.
        let spread = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        PROCESS.wrapping_add(spread)
    }

    /// The id as text.
    pub fn id_text(&self) -> String {
        format!("{:032x}", self.id)
    }

    /// What is known of the call since its start.
    pub fn start(&self) -> CallStart<'_> {
        CallStart {
            server: &self.server,
            method: self.method,
            target: &self.target,
            rules: self.rules,
            transport: self.transport,
            principal: &self.principal,
            via: self.via,
            trace: self.trace.as_ref(),
        }
    }

    /// How much the record keeps: the most that one of its readers wants.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// The steps so far, in the order of their start.
    pub fn steps(&self) -> Vec<Step> {
        let slots = self.progress.steps.lock();
        let now = Instant::now();
        let snapshot = |slot: &StepSlot| {
            let mut step = slot.step.clone();
            if !step.is_ended {
                step.duration = now.saturating_duration_since(slot.started);
            }
            step
        };
        slots.iter().map(snapshot).collect()
    }

    /// The number of steps so far.
    pub fn step_count(&self) -> usize {
        self.progress.steps.lock().len()
    }

    /// The messages so far, in order.
    pub fn frames(&self) -> Vec<CapturedFrame> {
        self.progress.frames.lock().clone()
    }

    /// Replaces what the layers of the server hide in messages, if they hide anything.
    pub fn redactor(&self) -> Option<&FrameRedactor> {
        self.redactor.as_ref()
    }

    /// The call that this one continues: the previous round, or the one that created the task that this call runs as.
    pub fn continues(&self) -> Option<EarlierCall> {
        self.progress.earlier.get().copied()
    }

    /// The number of this round of a call, from 1.
    pub fn round(&self) -> u16 {
        self.continues().map_or(1, |earlier| earlier.round.saturating_add(1))
    }

    /// Sets the call that this one continues. Only the first one counts.
    pub(crate) fn set_earlier(&self, earlier: EarlierCall) {
        _ = self.progress.earlier.set(earlier);
    }

    /// This call as the one that another one continues.
    pub(crate) fn as_earlier(&self) -> EarlierCall {
        EarlierCall { id: self.id, round: self.round() }
    }

    /// The record of the work on a task that this call created, if a reader wants it.
    pub(crate) fn start_task(&self) -> Option<RecordGuard> {
        let facts = RequestFacts {
            transport: self.transport,
            remote: self.remote,
            session: self.session,
            via: self.via,
            ..RequestFacts::default()
        };
        let new = NewRecord {
            server: &self.server,
            method: self.method,
            target: &self.target,
            rules: self.rules,
            principal: &self.principal,
            facts: &facts,
            trace: None,
            client: || self.client.clone(),
            earlier: Some(self.as_earlier()),
            redactor: self.redactor.as_ref(),
        };
        let (readers, detail) = interested(self.readers.iter(), &new.start());
        (!readers.is_empty()).then(|| RecordGuard::start(new.into_record(readers, detail)))
    }

    /// The end of the call, once it has ended.
    pub fn end(&self) -> Option<&CallEnd> {
        self.progress.end.get()
    }

    /// How long the call took, or has taken until now.
    pub fn duration(&self) -> Duration {
        self.end().map_or_else(|| self.started.elapsed(), |end| end.duration)
    }

    /// Starts a step. It is not kept if no reader wants steps, or if there are too many.
    pub fn start_step(self: &Arc<Self>, kind: StepKind, parent: Option<u16>) -> StepGuard {
        if self.detail < Detail::Steps {
            return StepGuard::new(Arc::clone(self), None, None);
        }
        let is_sampled = self.trace.as_ref().is_some_and(|trace| trace.is_sampled);
        let span_id = is_sampled.then(new_span_id);
        StepGuard::new(Arc::clone(self), self.push_step(kind, parent, span_id), span_id)
    }

    /// Starts a step for an input request to the client.
    pub(crate) fn start_input_request(
        self: &Arc<Self>,
        kind: &'static str,
        parent: Option<u16>,
    ) -> StepGuard {
        let round = self.next_input_round();
        self.start_step(StepKind::InputRequest { kind, round }, parent)
    }

    /// The round of the next input request. Those that are open together are one round.
    fn next_input_round(&self) -> u16 {
        let slots = self.progress.steps.lock();
        let round = |slot: &StepSlot| match slot.step.kind {
            StepKind::InputRequest { round, .. } => Some(round + u16::from(slot.step.is_ended)),
            _ => None,
        };
        slots.iter().filter_map(round).max().unwrap_or(1)
    }

    fn push_step(
        &self,
        kind: StepKind,
        parent: Option<u16>,
        span_id: Option<SpanId>,
    ) -> Option<u16> {
        let mut slots = self.progress.steps.lock();
        if slots.len() >= MAX_STEPS {
            return None;
        }
        let index = u16::try_from(slots.len()).ok()?;
        let started = Instant::now();
        let start = started.saturating_duration_since(self.started);
        slots.push(StepSlot {
            step: Step {
                index,
                parent,
                start,
                duration: Duration::ZERO,
                is_ended: false,
                span_id,
                kind,
                error: None,
            },
            started,
            passes: 0,
            passed: None,
        });
        Some(index)
    }

    pub(super) fn change_step(&self, index: Option<u16>, change: impl FnOnce(&mut StepKind)) {
        self.with_slot(index, |slot| change(&mut slot.step.kind));
    }

    pub(super) fn end_step(&self, index: Option<u16>, error: Option<ErrorType>) {
        self.with_slot(index, |slot| {
            slot.step.duration = slot.started.elapsed();
            slot.step.is_ended = true;
            slot.step.error = error;
        });
    }

    /// Counts that the layer of a step passes the call on.
    pub(crate) fn count_pass(&self, layer: Option<u16>) {
        self.with_slot(layer, |slot| slot.passes = slot.passes.saturating_add(1));
    }

    /// Sets the outcome that the layer of a step got for a call that it passed on.
    pub(crate) fn set_passed_outcome(&self, layer: Option<u16>, outcome: CallOutcome) {
        self.with_slot(layer, |slot| slot.passed = Some(outcome));
    }

    /// Records that the layer of a step changed the call or its outcome.
    pub(crate) fn set_changed(&self, layer: Option<u16>) {
        self.change_step(layer, |kind| {
            if let StepKind::Layer { decision, .. } = kind {
                *decision = Decision::Changed;
            }
        });
    }

    /// Decides what the layer of a step did with the call, now that it returned this outcome.
    pub(crate) fn decide_layer(&self, layer: Option<u16>, outcome: CallOutcome) {
        self.with_slot(layer, |slot| {
            let (passes, passed) = (slot.passes, slot.passed);
            let is_own_fault = matches!(outcome, CallOutcome::Fault(..))
                && !matches!(passed, Some(CallOutcome::Fault(..)));
            if let StepKind::Layer { decision, attempts, .. } = &mut slot.step.kind {
                *attempts = passes;
                *decision = match passes {
                    _ if is_own_fault => Decision::Refused,
                    0 => Decision::Answered,
                    1 => *decision,
                    _ => Decision::Retried,
                };
            }
        });
    }

    fn with_slot(&self, index: Option<u16>, change: impl FnOnce(&mut StepSlot)) {
        let Some(index) = index else { return };
        if let Some(slot) = self.progress.steps.lock().get_mut(usize::from(index)) {
            change(slot);
        }
    }

    /// Keeps a message, if a reader wants messages and there are not too many.
    pub fn add_frame(&self, direction: FrameDirection, step: Option<u16>, message: &[u8]) {
        if self.detail < Detail::Frames {
            return;
        }
        let at = self.started.elapsed();
        let mut frames = self.progress.frames.lock();
        if frames.len() < MAX_FRAMES {
            let (text, length) = (CapturedFrame::text_of(message), message.len());
            frames.push(CapturedFrame { direction, at, step, text, length });
        }
    }

    /// Sets the end of the call and tells the readers. Only the first end counts.
    pub(crate) fn finish(self: &Arc<Self>, outcome: CallOutcome, denied_by: Option<Arc<str>>) {
        let duration = self.started.elapsed();
        if self.progress.end.set(CallEnd { duration, outcome, denied_by }).is_ok() {
            self.report_end();
        }
    }

    /// Lets the report of the end wait for the message of the response, if a reader wants messages.
    pub(crate) fn hold(self: &Arc<Self>) -> Option<ReportHold> {
        (self.detail >= Detail::Frames).then(|| {
            self.progress.is_held.store(true, Ordering::Release);
            ReportHold(Arc::clone(self))
        })
    }

    fn report_end(self: &Arc<Self>) {
        let progress = &self.progress;
        if progress.end.get().is_some()
            && !progress.is_held.load(Ordering::Acquire)
            && !progress.is_reported.swap(true, Ordering::AcqRel)
        {
            self.tell_readers(|reader| reader.call_ended(self));
        }
    }

    /// Tells the readers that the call started.
    pub(crate) fn report_start(self: &Arc<Self>) {
        self.tell_readers(|reader| reader.call_started(self));
    }

    /// A reader that panics must not end the call.
    fn tell_readers(&self, tell: impl Fn(&dyn RecordReader)) {
        for reader in &self.readers {
            if catch_unwind(AssertUnwindSafe(|| tell(&**reader))).is_err() {
                tracing::error!(target: "creole", "a reader of call records panicked");
            }
        }
    }
}

impl fmt::Debug for CallRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallRecord")
            .field("id", &self.id_text())
            .field("method", &self.method)
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

/// The record of work that nobody waits for. Dropping it ends the work as cancelled.
pub struct RecordGuard(Arc<CallRecord>);

impl RecordGuard {
    /// The record of work that starts now.
    pub(crate) fn start(record: Arc<CallRecord>) -> Self {
        record.report_start();
        Self(record)
    }

    /// The record.
    pub fn record(&self) -> &Arc<CallRecord> {
        &self.0
    }

    /// Ends the work.
    pub fn finish(self, outcome: CallOutcome) {
        self.0.finish(outcome, None);
    }
}

impl Drop for RecordGuard {
    fn drop(&mut self) {
        // Only the first end counts.
        self.0.finish(CallOutcome::Cancelled, None);
    }
}

/// Lets the report of a call's end wait. The report follows when it is dropped.
pub(crate) struct ReportHold(Arc<CallRecord>);

impl ReportHold {
    /// The record.
    pub(crate) fn record(&self) -> &Arc<CallRecord> {
        &self.0
    }
}

impl Drop for ReportHold {
    fn drop(&mut self) {
        self.0.progress.is_held.store(false, Ordering::Release);
        self.0.report_end();
    }
}

/// A number that two processes hardly share, for a system without random bytes.
fn process_number() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(SystemTime::now())
}
