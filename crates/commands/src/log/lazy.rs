//! A subscriber that is created when the first event is written.
//!
//! Most servers never write one, and the span storage of the default subscriber takes eight pages of memory when it is
//! created: a twentieth of a start.

use creole::internal::sync::RwLock;
use std::sync::{Arc, OnceLock};

use creole_admin::LogBuffer;
use creole_config::LogSender;
use tracing::callsite::rebuild_interest_cache;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};

/// The subscriber that writes events. It is not a separate dispatcher: those are asked for their interest in every
/// callsite, and this one accepts every event that it receives.
pub(super) type EventSubscriber = Box<dyn Subscriber + Send + Sync>;

/// The level of the least important events that are written.
static LEVEL: RwLock<LevelFilter> = RwLock::new(LevelFilter::OFF);

/// Changes the log level from now on.
pub(super) fn set_level(level: LevelFilter) {
    *LEVEL.write() = level;
    rebuild_interest_cache();
}

/// Where events are exported to.
static EXPORT: RwLock<Option<LogSender>> = RwLock::new(None);

/// The level of the least important events that are exported.
const EXPORTED: LevelFilter = LevelFilter::INFO;

/// Exports events from now on.
pub(super) fn set_export(export: Option<LogSender>) {
    *EXPORT.write() = export;
    rebuild_interest_cache();
}

/// Where the admin listener reads events.
static BUFFER: RwLock<Option<Arc<LogBuffer>>> = RwLock::new(None);

/// Lets the admin listener read events from now on.
pub(super) fn set_buffer(buffer: Arc<LogBuffer>) {
    *BUFFER.write() = Some(buffer);
    rebuild_interest_cache();
}

/// Whether a reader of the admin listener wants such an event.
fn is_read(metadata: &Metadata<'_>) -> bool {
    BUFFER.read().as_ref().is_some_and(|buffer| buffer.wants(metadata))
}

/// The level of the least important events that are written or exported.
fn level() -> LevelFilter {
    let written = *LEVEL.read();
    if EXPORT.read().is_some() { written.max(EXPORTED) } else { written }
}

/// Forwards events to a subscriber that it creates for the first of them. Spans are not recorded: this program opens
/// none, and those of libraries would only make lines longer.
pub(super) struct LazySubscriber {
    /// `None` if no events are written.
    make: Option<fn() -> EventSubscriber>,
    made: OnceLock<EventSubscriber>,
}

impl LazySubscriber {
    pub(super) fn new(make: Option<fn() -> EventSubscriber>) -> Self {
        Self { make, made: OnceLock::new() }
    }
}

impl Subscriber for LazySubscriber {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        match self.enabled(metadata) {
            true => Interest::always(),
            false => Interest::never(),
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && (*metadata.level() <= level() || is_read(metadata))
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let read = BUFFER.read().as_ref().map_or(LevelFilter::OFF, |buffer| buffer.level());
        Some(level().max(read))
    }

    fn event(&self, event: &Event<'_>) {
        let is_written = self.make.is_some() && *event.metadata().level() <= *LEVEL.read();
        if let Some(make) = self.make.filter(|_| is_written) {
            self.made.get_or_init(make).event(event);
        }
        if let Some(buffer) = &*BUFFER.read()
            && (is_written || buffer.wants(event.metadata()))
        {
            buffer.push(event);
        }
        if let Some(export) = &*EXPORT.read() {
            export.send_event(event);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tracing::subscriber::with_default;

    use super::*;

    static MADE: AtomicUsize = AtomicUsize::new(0);
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);

    /// Counts the events that it receives.
    struct Counter;

    impl Subscriber for Counter {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn event(&self, _: &Event<'_>) {
            WRITTEN.fetch_add(1, Ordering::Relaxed);
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    fn log_event() {
        tracing::error!("broken");
        tracing::warn!("odd");
        tracing::info!("usual");
    }

    fn counts() -> [usize; 2] {
        [&MADE, &WRITTEN].map(|count| count.load(Ordering::Relaxed))
    }

    #[test]
    fn it_is_made_once_for_the_first_event_of_its_level_and_the_level_can_change() {
        let late = LazySubscriber::new(Some(|| {
            MADE.fetch_add(1, Ordering::Relaxed);
            Box::new(Counter)
        }));
        with_default(late, || {
            set_level(LevelFilter::WARN);
            tracing::info!("usual");
            let _span = tracing::error_span!("place").entered();
            assert_eq!(counts(), [0, 0]);
            log_event();
            assert_eq!(counts(), [1, 2]);
            assert!(!tracing::enabled!(tracing::Level::INFO));
            set_level(LevelFilter::INFO);
            assert!(tracing::enabled!(tracing::Level::INFO));
            assert!(!tracing::enabled!(tracing::Level::DEBUG));
            log_event();
            assert_eq!(counts(), [1, 5]);
            set_level(LevelFilter::ERROR);
            log_event();
            assert_eq!(counts(), [1, 6]);
        });
    }
}
