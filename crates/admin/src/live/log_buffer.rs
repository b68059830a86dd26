//! The last events of the log of this process, and the readers of new ones.
//!
//! The buffer holds events that the log writes anyway. A reader may want less important ones: they are made only while
//! it reads.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use creole::internal::sync::Mutex;
use creole::internal::telemetry::trace::current_span;
use creole_proto::wire::{hex, is_control};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tracing::callsite::rebuild_interest_cache;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata};

use crate::clock;

/// Maximum number of events, and of bytes in their texts.
const MAX_EVENTS: usize = 1000;
const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Maximum length of a text in an event in bytes, and maximum number of its fields.
const MAX_TEXT: usize = 4096;
const MAX_FIELDS: usize = 32;
/// Events with this target are whole messages of clients. They need more than the role to read.
const PAYLOAD_TARGET: &str = "creole::payload";
/// Events of other programs' parts are kept only if the log writes them: those about a connection would follow from
/// each other.
const OWN_TARGET: &str = "creole";

/// One event of a log.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct LogEvent {
    /// When it happened.
    pub(crate) at: String,
    /// Its level: `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`.
    pub(crate) level: &'static str,
    /// The part of the program.
    pub(crate) target: &'static str,
    /// What happened. Control characters are escaped.
    pub(crate) message: String,
    /// Its other fields.
    pub(crate) fields: Map<String, Value>,
    /// The trace that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
}

/// The last events of a log.
#[derive(Default)]
pub struct LogBuffer {
    state: Mutex<BufferState>,
    /// The rank of the least important events that readers want, plus one. 0: there is no reader.
    wanted: AtomicUsize,
    changed: Notify,
}

#[derive(Default)]
struct BufferState {
    events: VecDeque<KeptEvent>,
    bytes: usize,
    /// The number of the next event.
    next: u64,
    /// How many events of each rank there were.
    totals: [u64; 5],
    /// How many readers want each rank and those before it.
    readers: [usize; 5],
}

struct KeptEvent {
    number: u64,
    rank: usize,
    bytes: usize,
    event: Arc<LogEvent>,
}

/// The levels, the most severe first. The rank of a level is its place.
pub(crate) const LEVELS: [Level; 5] =
    [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];

fn rank_of(level: Level) -> usize {
    LEVELS.iter().position(|known| *known == level).unwrap_or(LEVELS.len() - 1)
}

impl LogBuffer {
    /// The level of the least important events that readers want.
    pub fn level(&self) -> LevelFilter {
        match self.wanted.load(Ordering::Relaxed) {
            0 => LevelFilter::OFF,
            wanted => LevelFilter::from_level(LEVELS[(wanted - 1).min(LEVELS.len() - 1)]),
        }
    }

    /// Whether a reader wants such an event although the log does not write it.
    pub fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        *metadata.level() <= self.level()
            && target.starts_with(OWN_TARGET)
            && target != PAYLOAD_TARGET
    }

    /// Keeps an event, and drops the oldest ones that have no room.
    pub fn push(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        if metadata.target() == PAYLOAD_TARGET {
            return;
        }
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let kept = LogEvent {
            at: clock::text(SystemTime::now()),
            level: metadata.level().as_str(),
            target: metadata.target(),
            message: fields.message,
            fields: fields.others,
            trace: current_span().map(|span| hex(&span.trace_id)),
        };
        self.keep(rank_of(*metadata.level()), fields.bytes, kept);
    }

    fn keep(&self, rank: usize, bytes: usize, event: LogEvent) {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.totals[rank] += 1;
        state.bytes += bytes;
        state.events.push_back(KeptEvent { number, rank, bytes, event: Arc::new(event) });
        while state.events.len() > MAX_EVENTS || state.bytes > MAX_BYTES {
            let Some(oldest) = state.events.pop_front() else { break };
            state.bytes -= oldest.bytes;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// The events of this rank and more severe ones, oldest first.
    pub(crate) fn last(&self, rank: usize) -> Vec<Arc<LogEvent>> {
        let state = self.state.lock();
        let wanted = state.events.iter().filter(|kept| kept.rank <= rank);
        wanted.map(|kept| Arc::clone(&kept.event)).collect()
    }

    /// A reader of events of this rank and more severe ones. It begins with the events that are kept.
    pub(crate) fn read(self: &Arc<Self>, rank: usize) -> LogReader {
        let mut state = self.state.lock();
        state.readers[rank] += 1;
        let kept = state.events.iter().filter(|kept| kept.rank <= rank).count() as u64;
        let position = state.events.front().map_or(state.next, |first| first.number);
        let seen = state.total(rank) - kept;
        self.set_wanted(&state);
        drop(state);
        rebuild_interest_cache();
        LogReader { buffer: Arc::clone(self), rank, position, seen }
    }

    fn set_wanted(&self, state: &BufferState) {
        let most = state.readers.iter().rposition(|count| *count > 0);
        self.wanted.store(most.map_or(0, |rank| rank + 1), Ordering::Relaxed);
    }
}

impl BufferState {
    /// How many events of this rank and more severe ones there were.
    fn total(&self, rank: usize) -> u64 {
        self.totals[..=rank].iter().sum()
    }
}

/// Reads the events of a log. Events that are dropped before it reads them are counted.
pub(crate) struct LogReader {
    buffer: Arc<LogBuffer>,
    rank: usize,
    /// The number of the next event.
    position: u64,
    /// How many events of its rank it has read or counted.
    seen: u64,
}

impl LogReader {
    /// The new events, at most this many, and how many were dropped before them. The oldest are dropped.
    pub(crate) fn next(&mut self, limit: usize) -> (Vec<Arc<LogEvent>>, u64) {
        let state = self.buffer.state.lock();
        let is_new = |kept: &&KeptEvent| kept.number >= self.position && kept.rank <= self.rank;
        let mut events: Vec<_> =
            state.events.iter().filter(is_new).map(|kept| Arc::clone(&kept.event)).collect();
        let excess = events.len().saturating_sub(limit);
        events.drain(..excess);
        let total = state.total(self.rank);
        let missed = total - self.seen - events.len() as u64;
        self.position = state.next;
        self.seen = total;
        (events, missed)
    }

    /// Waits until there is an event that was not read.
    pub(crate) async fn changed(&self) {
        loop {
            let changed = self.buffer.changed.notified();
            tokio::pin!(changed);
            // It hears of events from here on.
            changed.as_mut().enable();
            if self.buffer.state.lock().next > self.position {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for LogReader {
    fn drop(&mut self) {
        let mut state = self.buffer.state.lock();
        state.readers[self.rank] -= 1;
        self.buffer.set_wanted(&state);
        drop(state);
        rebuild_interest_cache();
    }
}

/// The fields of an event, within limits.
#[derive(Default)]
struct EventFields {
    message: String,
    others: Map<String, Value>,
    bytes: usize,
}

impl EventFields {
    fn add(&mut self, field: &Field, value: Value) {
        if self.others.len() < MAX_FIELDS {
            self.bytes += field.name().len() + value.as_str().map_or(8, str::len);
            self.others.insert(field.name().to_owned(), value);
        }
    }

    fn add_text(&mut self, field: &Field, text: &str) {
        let text = shown(text);
        if field.name() == "message" {
            self.bytes += text.len();
            self.message = text;
        } else {
            self.add(field, text.into());
        }
    }
}

impl Visit for EventFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, &format!("{value:?}"));
    }
}

/// A text within its limit, with control characters escaped.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(MAX_TEXT));
    for character in text.chars() {
        if shown.len() >= MAX_TEXT {
            shown.push('…');
            break;
        }
        match character {
            '\n' | '\t' => shown.push(character),
            _ if is_control(character) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: usize = 2;
    const DEBUG: usize = 3;

    fn event(message: &str) -> LogEvent {
        LogEvent {
            at: String::new(),
            level: "INFO",
            target: "creole",
            message: message.to_owned(),
            fields: Map::new(),
            trace: None,
        }
    }

    fn messages(events: &[Arc<LogEvent>]) -> Vec<&str> {
        events.iter().map(|event| event.message.as_str()).collect()
    }

    #[test]
    fn a_reader_gets_the_kept_events_and_then_new_ones_of_its_level() {
        let buffer = Arc::new(LogBuffer::default());
        buffer.keep(INFO, 1, event("one"));
        buffer.keep(DEBUG, 1, event("detail"));
        let mut reader = buffer.read(INFO);
        let (events, missed) = reader.next(10);
        assert_eq!((messages(&events), missed), (vec!["one"], 0));
        buffer.keep(INFO, 1, event("two"));
        buffer.keep(DEBUG, 1, event("more"));
        assert_eq!(messages(&reader.next(10).0), ["two"]);
        assert_eq!(reader.next(10), (Vec::new(), 0));
        assert_eq!(messages(&buffer.last(DEBUG)), ["one", "detail", "two", "more"]);
    }

    #[test]
    fn events_that_a_slow_reader_misses_are_counted_if_it_wants_them() {
        let buffer = Arc::new(LogBuffer::default());
        let mut reader = buffer.read(INFO);
        for number in 0..MAX_EVENTS + 5 {
            buffer.keep(INFO, 1, event(&number.to_string()));
            buffer.keep(DEBUG, 1, event("detail"));
        }
        let (events, missed) = reader.next(usize::MAX);
        assert_eq!(events.len() as u64 + missed, MAX_EVENTS as u64 + 5);
        assert_eq!(events.len(), MAX_EVENTS / 2);
        for _ in 0..10 {
            buffer.keep(INFO, 1, event("x"));
        }
        let (events, missed) = reader.next(3);
        assert_eq!((events.len(), missed), (3, 7));
    }

    #[test]
    fn the_level_is_that_of_the_readers_and_the_bytes_are_bounded() {
        let buffer = Arc::new(LogBuffer::default());
        assert_eq!(buffer.level(), LevelFilter::OFF);
        let debug = buffer.read(DEBUG);
        let info = buffer.read(INFO);
        assert_eq!(buffer.level(), LevelFilter::DEBUG);
        drop(debug);
        assert_eq!(buffer.level(), LevelFilter::INFO);
        drop(info);
        assert_eq!(buffer.level(), LevelFilter::OFF);
        buffer.keep(INFO, MAX_BYTES, event("large"));
        buffer.keep(INFO, 1, event("small"));
        assert_eq!(messages(&buffer.last(INFO)), ["small"]);
    }

    #[test]
    fn texts_are_bounded_and_their_control_characters_are_escaped() {
        assert_eq!(shown("a\u{1b}[2J\u{202e}\né"), "a\\u{1b}[2J\\u{202e}\né");
        assert!(shown(&"x".repeat(2 * MAX_TEXT)).len() <= MAX_TEXT + "…".len());
    }

    #[tokio::test]
    async fn a_reader_waits_for_the_next_event() {
        let buffer = Arc::new(LogBuffer::default());
        let mut reader = buffer.read(INFO);
        let waiting = tokio::spawn(async move {
            reader.changed().await;
            messages(&reader.next(1).0).join("")
        });
        tokio::task::yield_now().await;
        buffer.keep(INFO, 1, event("new"));
        assert_eq!(waiting.await.unwrap(), "new");
    }
}
