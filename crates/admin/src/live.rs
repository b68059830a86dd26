//! What the process does now: the last calls, what was refused, and rates.
//!
//! Calls are recorded only while the API has visitors, and for an hour after the last visit. Otherwise a call costs
//! nothing here. Rates come from the metrics, which are read from time to time.

pub(crate) mod call;
pub(crate) mod captures;
pub(crate) mod denials;
pub(crate) mod log_buffer;
pub(crate) mod ring;
pub(crate) mod samples;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole::internal::sync::Mutex;
use creole::internal::telemetry::{
    CallRecord, CallStart, Detail, ReaderGuard, RecordReader, RefusedClientRequest, Telemetry,
};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::settings::CapturePolicy;
use captures::Captures;
use denials::Denials;
use ring::CallRing;
use samples::Samples;

/// How long calls are recorded after the last visit.
const VISIT: Duration = Duration::from_secs(60 * 60);

/// The live view of a process.
pub(crate) struct LiveView {
    telemetry: Telemetry,
    recorder: Arc<Recorder>,
    pub(crate) captures: Arc<Captures>,
    pub(crate) samples: Samples,
    recording: Mutex<Option<Recording>>,
}

struct Recording {
    since: SystemTime,
    last_visit: Instant,
    _reader: ReaderGuard,
}

/// Reads all calls while somebody visits.
#[derive(Default)]
struct Recorder {
    ring: CallRing,
    denials: Denials,
}

impl RecordReader for Recorder {
    fn wants(&self, _: &CallStart<'_>) -> Detail {
        Detail::Steps
    }

    fn call_started(&self, record: &Arc<CallRecord>) {
        self.ring.start(record);
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        self.ring.end(record);
        self.denials.read(record);
    }

    fn request_refused(&self, request: &RefusedClientRequest<'_>) {
        self.denials.read_request(request);
    }
}

impl LiveView {
    /// A view that records nothing yet.
    pub(crate) fn new(telemetry: Telemetry, capture: CapturePolicy) -> Self {
        let captures = Arc::new(Captures::new(telemetry.clone(), capture));
        let (recorder, recording) = (Arc::default(), Mutex::default());
        Self { telemetry, recorder, captures, samples: Samples::default(), recording }
    }

    /// Somebody calls the API: calls are recorded from now on.
    pub(crate) fn visit(&self) {
        let mut recording = self.recording.lock();
        match &mut *recording {
            Some(recording) => recording.last_visit = Instant::now(),
            None => {
                *recording = Some(Recording {
                    since: SystemTime::now(),
                    last_visit: Instant::now(),
                    _reader: self.telemetry.subscribe(Arc::clone(&self.recorder) as _),
                });
            }
        }
    }

    /// Since when calls are recorded.
    pub(crate) fn recording_since(&self) -> Option<SystemTime> {
        self.recording.lock().as_ref().map(|recording| recording.since)
    }

    /// The last calls.
    pub(crate) fn ring(&self) -> &CallRing {
        &self.recorder.ring
    }

    /// What was refused.
    pub(crate) fn denials(&self) -> &Denials {
        &self.recorder.denials
    }

    /// Reads the metrics each second, and ends what has expired.
    pub(crate) async fn run(&self) {
        let mut ticks = interval(samples::STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let is_visited = self.end_recording();
            self.samples.take(&self.telemetry, is_visited);
            self.captures.end_expired();
        }
    }

    /// Ends the recording if nobody visits any more; whether somebody does.
    fn end_recording(&self) -> bool {
        let mut recording = self.recording.lock();
        if recording.as_ref().is_some_and(|it| it.last_visit.elapsed() > VISIT) {
            *recording = None;
        }
        recording.is_some()
    }
}
