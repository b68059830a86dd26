//! Captures: the payloads of calls, for a while, without what must not be shown.

mod filter;
mod frames;
mod secrets;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use creole::internal::sync::Mutex;
use creole::internal::task::random_id;
use creole::internal::telemetry::{
    CallRecord, CallStart, Detail, ReaderGuard, RecordReader, Telemetry,
};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::Instant;

use crate::clock;
use crate::settings::CapturePolicy;
pub(crate) use filter::CaptureFilter;
pub(crate) use frames::FrameView;
use frames::views;

/// Maximum number of captures at the same time.
const MAX_CAPTURES: usize = 8;
/// Maximum number of bytes of all kept messages, and of calls whose messages are kept.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const MAX_CALLS: usize = 2000;
/// A running capture.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Capture {
    /// Its id.
    pub(crate) id: String,
    /// Which calls it takes.
    filter: CaptureFilter,
    /// Who started it.
    by: String,
    /// When it started.
    started: String,
    /// When it ends by itself.
    ends: String,
    /// How many calls it takes at most.
    max: usize,
    /// How many it has taken.
    taken: usize,
}

struct Running {
    shown: Capture,
    ends: Instant,
}

/// The captures of a process.
pub(crate) struct Captures {
    telemetry: Telemetry,
    policy: CapturePolicy,
    state: Mutex<CaptureState>,
}

#[derive(Default)]
struct CaptureState {
    running: Vec<Running>,
    kept: HashMap<u128, KeptPayloads>,
    /// The kept calls, oldest first.
    order: VecDeque<u128>,
    bytes: usize,
    reader: Option<ReaderGuard>,
}

struct KeptPayloads {
    frames: Vec<FrameView>,
    /// Who has looked at them.
    viewers: Vec<String>,
    /// The capture that took the call. `None` if all calls are captured.
    capture: Option<String>,
    bytes: usize,
}

/// Why a capture cannot start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CaptureRefusal {
    /// The configuration forbids it.
    Never,
    /// There are too many.
    TooMany,
}

struct CaptureReader(Weak<Captures>);

impl Captures {
    /// No capture runs yet.
    pub(crate) fn new(telemetry: Telemetry, policy: CapturePolicy) -> Self {
        Self { telemetry, policy, state: Mutex::default() }
    }

    /// Starts a capture.
    pub(crate) fn start(
        self: &Arc<Self>,
        filter: CaptureFilter,
        by: &str,
        lifetime: Duration,
        max: usize,
    ) -> Result<Capture, CaptureRefusal> {
        if self.policy == CapturePolicy::Never {
            return Err(CaptureRefusal::Never);
        }
        let now = SystemTime::now();
        let shown = Capture {
            id: random_id().map_err(|_| CaptureRefusal::TooMany)?,
            filter,
            by: by.to_owned(),
            started: clock::text(now),
            ends: clock::text(now + lifetime),
            max,
            taken: 0,
        };
        let mut state = self.state.lock();
        if state.running.len() >= MAX_CAPTURES {
            return Err(CaptureRefusal::TooMany);
        }
        state.running.push(Running { shown: shown.clone(), ends: Instant::now() + lifetime });
        let is_read = state.reader.is_some();
        drop(state);
        if !is_read {
            self.subscribe();
        }
        Ok(shown)
    }

    /// Captures all calls, if the configuration says so.
    pub(crate) fn start_always(self: &Arc<Self>) {
        if self.policy == CapturePolicy::Always {
            self.subscribe();
        }
    }

    /// Not under the lock: the telemetry asks its readers.
    fn subscribe(self: &Arc<Self>) {
        let reader = self.telemetry.subscribe(Arc::new(CaptureReader(Arc::downgrade(self))));
        let before = self.state.lock().reader.replace(reader);
        drop(before);
    }

    /// The running captures.
    pub(crate) fn list(&self) -> Vec<Capture> {
        self.state.lock().running.iter().map(|running| running.shown.clone()).collect()
    }

    /// Ends a capture and forgets its payloads; whether there was one.
    pub(crate) fn end(&self, id: &str) -> bool {
        self.end_where(|running| running.shown.id == id)
    }

    /// Ends captures whose time is over.
    pub(crate) fn end_expired(&self) {
        let now = Instant::now();
        self.end_where(|running| now >= running.ends);
    }

    fn end_where(&self, is_over: impl Fn(&Running) -> bool) -> bool {
        let mut state = self.state.lock();
        let (over, running): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.running).into_iter().partition(is_over);
        state.running = running;
        if over.is_empty() {
            return false;
        }
        let over: Vec<String> = over.into_iter().map(|running| running.shown.id).collect();
        state.forget(|kept| kept.capture.as_ref().is_some_and(|id| over.contains(id)));
        let is_unused = state.running.is_empty() && self.policy != CapturePolicy::Always;
        let reader = if is_unused { state.reader.take() } else { None };
        drop(state);
        drop(reader);
        true
    }

    /// Whether the payloads of a call are kept.
    pub(crate) fn has(&self, call: u128) -> bool {
        self.state.lock().kept.contains_key(&call)
    }

    /// The payloads of a call for this person, and whether it is the first look of this person.
    pub(crate) fn view(&self, call: u128, viewer: &str) -> Option<(Vec<FrameView>, bool)> {
        let mut state = self.state.lock();
        let kept = state.kept.get_mut(&call)?;
        let is_first = !kept.viewers.iter().any(|known| known == viewer);
        if is_first {
            kept.viewers.push(viewer.to_owned());
        }
        Some((kept.frames.clone(), is_first))
    }

    fn wants(&self, start: &CallStart<'_>) -> bool {
        self.policy == CapturePolicy::Always
            || self.state.lock().running.iter().any(|running| {
                running.shown.taken < running.shown.max && running.shown.filter.matches_start(start)
            })
    }

    fn keep(&self, record: &CallRecord) {
        let frames = record.frames();
        if frames.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        let is_taker = |running: &&mut Running| {
            running.shown.taken < running.shown.max && running.shown.filter.matches(record)
        };
        let capture = match state.running.iter_mut().find(is_taker) {
            Some(running) => {
                running.shown.taken += 1;
                Some(running.shown.id.clone())
            }
            None if self.policy == CapturePolicy::Always => None,
            None => return,
        };
        drop(state);
        let frames = views(record, &frames);
        let bytes = frames.iter().map(|frame| frame.text.len()).sum();
        self.state
            .lock()
            .insert(record.id, KeptPayloads { frames, viewers: Vec::new(), capture, bytes });
    }
}

impl CaptureState {
    fn insert(&mut self, call: u128, kept: KeptPayloads) {
        // The capture may have ended meanwhile.
        let is_over = |id: &String| !self.running.iter().any(|running| running.shown.id == *id);
        if kept.capture.as_ref().is_some_and(is_over) {
            return;
        }
        self.bytes += kept.bytes;
        self.order.push_back(call);
        self.kept.insert(call, kept);
        while self.bytes > MAX_BYTES || self.order.len() > MAX_CALLS {
            let Some(oldest) = self.order.pop_front() else { break };
            self.bytes -= self.kept.remove(&oldest).map_or(0, |kept| kept.bytes);
        }
    }

    fn forget(&mut self, is_forgotten: impl Fn(&KeptPayloads) -> bool) {
        self.kept.retain(|_, kept| !is_forgotten(kept));
        self.order.retain(|call| self.kept.contains_key(call));
        self.bytes = self.kept.values().map(|kept| kept.bytes).sum();
    }
}

impl RecordReader for CaptureReader {
    fn wants(&self, start: &CallStart<'_>) -> Detail {
        match self.0.upgrade().is_some_and(|captures| captures.wants(start)) {
            true => Detail::Frames,
            false => Detail::None,
        }
    }

    fn call_ended(&self, record: &Arc<CallRecord>) {
        if let Some(captures) = self.0.upgrade() {
            captures.keep(record);
        }
    }

    fn reads_frames(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_capture_ends_by_itself_and_stops_reading() {
        let telemetry = Telemetry::default();
        let captures = Arc::new(Captures::new(telemetry.clone(), CapturePolicy::Ask));
        let minute = Duration::from_secs(60);
        captures.start(CaptureFilter::default(), "anna", minute, 5).unwrap();
        assert!(!telemetry.modes().is_empty());
        captures.end_expired();
        assert_eq!(captures.list().len(), 1);
        tokio::time::advance(minute).await;
        captures.end_expired();
        assert!(captures.list().is_empty() && telemetry.modes().is_empty());
        for _ in 0..MAX_CAPTURES {
            captures.start(CaptureFilter::default(), "anna", minute, 5).unwrap();
        }
        let refused = captures.start(CaptureFilter::default(), "anna", minute, 5);
        assert_eq!(refused.unwrap_err(), CaptureRefusal::TooMany);
        let never = Arc::new(Captures::new(telemetry, CapturePolicy::Never));
        let refused = never.start(CaptureFilter::default(), "anna", minute, 5);
        assert_eq!(refused.unwrap_err(), CaptureRefusal::Never);
    }
}
