//! The record of one call.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use creole_proto::fault::FaultKind;
use creole_proto::model::Implementation;
use creole_proto::revision::Rules;

use crate::principal::Principal;
use crate::random::random_bytes;
use crate::sync::Mutex;
use crate::telemetry::frames::{CapturedFrame, FrameDirection, FrameRedactor, MAX_FRAMES};
use crate::telemetry::reader::{CallStart, Detail, RecordReader};
use crate::telemetry::steps::{ErrorType, MAX_STEPS, Step, StepGuard, StepKind};
use crate::telemetry::trace::CallTrace;

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
    pub remote: Option<SocketAddr>,
    /// What the client says about itself.
    pub client: Option<Implementation>,
    /// Where the call comes from.
    pub via: Via,
    /// The call that this one continues: the one that created the task.
    pub continues: Option<u128>,
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

/// What changes in a record while the call runs.
#[derive(Default)]
pub(super) struct CallProgress {
    steps: Mutex<Vec<StepSlot>>,
    frames: Mutex<Vec<CapturedFrame>>,
    end: OnceLock<CallEnd>,
    /// Whether the end waits for the response's message.
    is_held: AtomicBool,
    is_reported: AtomicBool,
}

/// A step, and what tells the decision of a layer.
struct StepSlot {
    step: Step,
    started: Instant,
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
        let index = (self.detail >= Detail::Steps).then(|| self.push_step(kind, parent)).flatten();
        StepGuard::new(Arc::clone(self), index, None)
    }

    fn push_step(&self, kind: StepKind, parent: Option<u16>) -> Option<u16> {
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
                span_id: None,
                kind,
                error: None,
            },
            started,
        });
        Some(index)
    }

    pub(super) fn change_step(&self, index: Option<u16>, change: impl FnOnce(&mut StepKind)) {
        let Some(index) = index else { return };
        if let Some(slot) = self.progress.steps.lock().get_mut(usize::from(index)) {
            change(&mut slot.step.kind);
        }
    }

    pub(super) fn end_step(&self, index: Option<u16>, error: Option<ErrorType>) {
        let Some(index) = index else { return };
        if let Some(slot) = self.progress.steps.lock().get_mut(usize::from(index))
            && !slot.step.is_ended
        {
            slot.step.duration = slot.started.elapsed();
            slot.step.is_ended = true;
            slot.step.error = error;
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
            self.readers.iter().for_each(|reader| reader.call_ended(self));
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
