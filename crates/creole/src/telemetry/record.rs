//! The record of one call.

mod guards;
mod new_record;
mod reader;
mod reader_events;
mod step_guard;
mod steps;

use std::fmt;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use creole_proto::model::Implementation;
use creole_proto::revision::Rules;
use serde::{Deserialize, Serialize};

use crate::principal::Principal;
use crate::sync::Mutex;
use crate::telemetry::facts::{Transport, Via};
use crate::telemetry::frames::{CapturedFrame, FrameDirection, FrameRedactor, MAX_FRAMES};
use crate::telemetry::outcome::{CallEnd, CallOutcome};
use crate::telemetry::trace::{CallTrace, Link, SpanId, TraceId};
pub use guards::RecordGuard;
pub(crate) use guards::ReportHold;
pub(crate) use new_record::NewRecord;
pub(super) use reader::Readers;
pub use reader::{CallStart, Detail, ReaderGuard, RecordReader};
pub use reader_events::{PayloadView, RefusedClientRequest};
pub use step_guard::{FrameTap, StepGuard};
use steps::StepSlot;

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
    pub request_id: Option<Arc<str>>,
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
    /// The span of the first round, if that was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<(TraceId, SpanId)>,
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

impl CallRecord {
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
        if self.progress.earlier.set(earlier).is_ok()
            && let (Some((trace_id, span_id)), Some(trace)) = (earlier.first, &self.trace)
        {
            trace.set_first_round(Link::sampled(trace_id, span_id));
        }
    }

    /// This call as the one that another one continues.
    pub fn as_earlier(&self) -> EarlierCall {
        let own = || self.trace.as_ref()?.context().map(|own| (own.trace_id, own.span_id));
        let first = self.continues().and_then(|earlier| earlier.first).or_else(own);
        EarlierCall { id: self.id, round: self.round(), first }
    }

    /// The end of the call, once it has ended.
    pub fn end(&self) -> Option<&CallEnd> {
        self.progress.end.get()
    }

    /// How long the call took, or has taken until now.
    pub fn duration(&self) -> Duration {
        self.end().map_or_else(|| self.started.elapsed(), |end| end.duration)
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

    /// Sets the end of a call that has ended before it had a record, and tells the readers.
    pub(super) fn end_late(self: &Arc<Self>, end: CallEnd) {
        if self.progress.end.set(end).is_ok() {
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
        // The end is set by one thread and the hold ends in another: one of them sees both.
        fence(Ordering::SeqCst);
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
