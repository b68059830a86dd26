//! Telemetry: one record per call, and its readers.
//!
//! The layers and endpoints of a chain know the record of their call and no reader. A record exists only if a reader
//! wants the call. With everything off, a call reads one flag.

pub(crate) mod error_type;
pub(crate) mod facts;
pub(crate) mod frames;
pub(crate) mod metrics;
mod modes;
pub(crate) mod outcome;
pub(crate) mod record;
pub(crate) mod request_log;
pub(crate) mod steps;
pub mod trace;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};
use creole_proto::model::Implementation;
use creole_proto::revision::Rules;

use crate::principal::Principal;
use facts::{RequestFacts, Via};
use metrics::Metrics;
pub use modes::Modes;
pub(crate) use modes::SharedModes;
use outcome::{CallEnd, CallOutcome};
#[cfg(feature = "http")]
use record::RefusedClientRequest;
use record::{
    CallRecord, EarlierCall, NewRecord, PayloadView, ReaderGuard, Readers, RecordGuard,
    RecordReader,
};
use trace::{
    CallTrace, IncomingTrace, Link, ReplicaTrace, Sampler, SpanId, TraceSettings, new_span_id,
};

/// The telemetry of a process. Clones share it. It survives reloads. Off by default.
#[derive(Clone, Default)]
pub struct Telemetry {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    modes: SharedModes,
    metrics: Arc<Metrics>,
    tracing: ArcSwapOption<TraceSettings>,
    /// The sampler of new traces, see [`Sampler::bound`].
    sample_bound: AtomicU64,
    readers: Readers,
    /// From this duration on a reader may want a call at its end that did not fail, in nanoseconds.
    late_after: AtomicU64,
}

impl Telemetry {
    /// The metrics, which stay empty until they are [enabled](Self::enable_metrics).
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Counts and measures calls from now on.
    pub fn enable_metrics(&self) {
        self.shared.metrics.enable();
        self.shared.modes.set(Modes::METRICS, true);
    }

    /// Sets how calls become parts of traces. `None`: they do not.
    pub fn set_tracing(&self, settings: Option<Arc<TraceSettings>>) {
        let is_on = settings.is_some();
        let bound = settings.as_ref().map_or(0, |settings| settings.sampler.bound());
        self.shared.tracing.store(settings);
        self.shared.sample_bound.store(bound, Ordering::Relaxed);
        self.shared.modes.set(Modes::TRACES, is_on);
    }

    /// Whether a new trace is sampled whose id has this second half.
    #[inline]
    pub(crate) fn samples(&self, new_half: SpanId) -> bool {
        Sampler::from_bound(self.shared.sample_bound.load(Ordering::Relaxed)).takes_half(new_half)
    }

    /// How calls become parts of traces.
    pub(crate) fn tracing(&self) -> Guard<Option<Arc<TraceSettings>>> {
        self.shared.tracing.load()
    }

    /// Lets a reader choose among the calls that start from now on, until the guard is dropped.
    #[must_use = "the reader is removed when the guard is dropped"]
    pub fn subscribe(&self, reader: Arc<dyn RecordReader>) -> ReaderGuard {
        let number = self.shared.readers.add(reader);
        self.update_reader_modes();
        let telemetry = self.clone();
        ReaderGuard::new(move || {
            telemetry.shared.readers.remove(number);
            telemetry.update_reader_modes();
        })
    }

    /// What is on.
    #[inline]
    pub fn modes(&self) -> Modes {
        self.shared.modes.load()
    }

    /// The modes, for those who read them often.
    pub(crate) fn shared_modes(&self) -> SharedModes {
        self.shared.modes.clone()
    }

    /// Whether a reader may want the record of a call with this place in a trace.
    pub(crate) fn may_record(&self, trace: Option<&CallTrace>) -> bool {
        let is_sampled = trace.is_some_and(|trace| trace.is_sampled);
        self.modes().contains(if is_sampled { Modes::RECORDS } else { Modes::UNSAMPLED })
    }

    /// The record of a call that starts now, if a reader wants it.
    pub(crate) fn start_record<C>(&self, new: NewRecord<'_, C>) -> Option<Arc<CallRecord>>
    where
        C: FnOnce() -> Option<Implementation>,
    {
        if !self.modes().contains(Modes::RECORDS) {
            return None;
        }
        let (readers, detail) = self.shared.readers.interested(&new.start());
        (!readers.is_empty()).then(|| new.into_record(readers, detail))
    }

    /// The record of a notification of a client, if a reader wants it.
    pub(crate) fn start_notification<C>(&self, new: NewRecord<'_, C>) -> Option<Arc<CallRecord>>
    where
        C: FnOnce() -> Option<Implementation>,
    {
        if !self.modes().contains(Modes::RECORDS) {
            return None;
        }
        let (readers, detail) = self.shared.readers.interested_in_notification(&new.start());
        (!readers.is_empty()).then(|| new.into_record(readers, detail))
    }

    /// The record of work that the gateway does for itself, if a reader wants it. `earlier` is the call that caused it.
    pub fn start_work(
        &self,
        method: &'static str,
        target: &str,
        rules: &'static Rules,
        earlier: Option<EarlierCall>,
    ) -> Option<RecordGuard> {
        if !self.modes().contains(Modes::RECORDS) {
            return None;
        }
        let trace = self.trace_of_work(earlier);
        self.start_own_work(Via::Gateway, method, target, rules, trace, earlier)
    }

    /// The record of a request of another replica, at which a client returned for its call, if a reader wants it. The
    /// call itself has its record there.
    pub fn start_replica_request(
        &self,
        method: &'static str,
        target: &str,
        trace: ReplicaTrace,
    ) -> Option<RecordGuard> {
        if ![Modes::RECORDS, Modes::TRACES].iter().all(|mode| self.modes().contains(*mode)) {
            return None;
        }
        let trace = trace.into_work()?;
        self.start_own_work(Via::Replica, method, target, Rules::CANONICAL, Some(trace), None)
    }

    /// The record of work without a client, if a reader wants it.
    fn start_own_work(
        &self,
        via: Via,
        method: &'static str,
        target: &str,
        rules: &'static Rules,
        trace: Option<CallTrace>,
        earlier: Option<EarlierCall>,
    ) -> Option<RecordGuard> {
        let facts = RequestFacts { via, ..RequestFacts::default() };
        let record = self.start_record(NewRecord {
            server: &Arc::from(""),
            method,
            target,
            rules,
            principal: &Principal::local(),
            facts: &facts,
            trace,
            client: || None,
            earlier,
            redactor: None,
        });
        record.map(RecordGuard::start)
    }

    /// The trace of work that the gateway does for itself, linked to the call that caused it.
    fn trace_of_work(&self, earlier: Option<EarlierCall>) -> Option<CallTrace> {
        if !self.modes().contains(Modes::TRACES) {
            return None;
        }
        let trace =
            self.tracing().as_ref()?.start_call(IncomingTrace::default(), true, new_span_id())?;
        if let Some((trace_id, span_id)) = earlier.and_then(|earlier| earlier.first) {
            trace.set_first_round(Link::sampled(trace_id, span_id));
        }
        Some(trace)
    }

    /// Whether a reader may want a call without a record, which ended like this.
    #[inline]
    pub(crate) fn may_want_late(&self, outcome: CallOutcome, duration: Duration) -> bool {
        outcome.error().is_some()
            || duration.as_nanos() >= u128::from(self.shared.late_after.load(Ordering::Relaxed))
    }

    /// The readers that want a call without a record, which ended like this.
    pub(crate) fn late_readers(&self, end: &CallEnd) -> Vec<Arc<dyn RecordReader>> {
        self.shared.readers.interested_late(end)
    }

    /// Reports a call that has ended and has no record to these readers.
    pub(crate) fn report_late<C>(
        new: NewRecord<'_, C>,
        end: CallEnd,
        readers: Vec<Arc<dyn RecordReader>>,
    ) where
        C: FnOnce() -> Option<Implementation>,
    {
        new.into_late_record(readers, end.duration).end_late(end);
    }

    /// Tells the readers that a client was refused before it could call something.
    #[cfg(feature = "http")]
    pub(crate) fn report_refused_request(&self, request: &RefusedClientRequest<'_>) {
        if self.modes().contains(Modes::RECORDS) {
            self.shared.readers.all().iter().for_each(|reader| reader.request_refused(request));
        }
    }

    /// Tells the readers that a person looked at the messages of a call.
    pub fn report_payload_view(&self, view: &PayloadView<'_>) {
        self.shared.readers.all().iter().for_each(|reader| reader.payloads_viewed(view));
    }

    fn update_reader_modes(&self) {
        // Under the lock of the readers, so that the last change also sets the modes.
        self.shared.readers.inspect(|readers| {
            let modes = &self.shared.modes;
            modes.set(Modes::RECORDS, !readers.is_empty());
            modes.set(Modes::UNSAMPLED, readers.iter().any(|reader| reader.reads_unsampled()));
            modes.set(Modes::FRAMES, readers.iter().any(|reader| reader.reads_frames()));
            let late_after = readers.iter().filter_map(|reader| reader.late_after()).min();
            let nanoseconds = late_after.map(|after| u64::try_from(after.as_nanos()));
            let nanoseconds = nanoseconds.and_then(Result::ok).unwrap_or(u64::MAX);
            self.shared.late_after.store(nanoseconds, Ordering::Relaxed);
            modes.set(Modes::LATE, late_after.is_some());
        });
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Telemetry").field("modes", &self.modes()).finish_non_exhaustive()
    }
}
