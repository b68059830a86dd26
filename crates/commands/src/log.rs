//! The log: writes one line per event to stderr, and never blocks the server.
//!
//! A client may start a server, keep its stderr in a pipe and never read it. A blocking write would then stop the
//! server after some hundred lines. A line that the pipe does not accept is therefore counted and dropped.

mod lazy;

use creole::internal::sync::Mutex;
use std::fmt::Write as _;
use std::io;
use std::io::{Stderr, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use creole::internal::telemetry::trace::{TraceContext, current_span, hex};
use creole::proto::wire::is_control;
use creole_admin::LogBuffer;
use creole_config::LogSender;
use creole_config::plan::LogPlan;
use creole_config::tables::enums::{LogFormat, LogLevel};
use lazy::{EventSubscriber, LazySubscriber};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::set_global_default;
use tracing_subscriber::Registry;
use tracing_subscriber::fmt::{Layer, MakeWriter, layer};
use tracing_subscriber::layer::SubscriberExt;

use crate::output;

/// The number of bytes that a writable pipe accepts without blocking (POSIX: `PIPE_BUF`, on Linux 4096).
const MAX_ATOMIC_WRITE: usize = 512;

/// Starts the log. With logging off, events are only exported.
pub(crate) fn start(plan: LogPlan) {
    if plan.format == LogFormat::Json {
        output::use_json_messages();
    }
    let make = match plan.format {
        LogFormat::Off => None,
        LogFormat::Text => Some(text as fn() -> EventSubscriber),
        LogFormat::Json => Some(json as fn() -> EventSubscriber),
    };
    IS_WRITTEN.store(make.is_some(), Ordering::Relaxed);
    set_level(plan.level);
    // It fails only if a subscriber is set already, which then receives the events.
    let _ = set_global_default(LazySubscriber::new(make));
}

/// Whether events are written to stderr.
static IS_WRITTEN: AtomicBool = AtomicBool::new(false);

/// Exports events from now on, also if none are written.
pub(crate) fn set_export(export: Option<LogSender>) {
    lazy::set_export(export);
}

/// Lets the admin listener read events from now on, also if none are written.
pub(crate) fn set_buffer(buffer: Arc<LogBuffer>) {
    lazy::set_buffer(buffer);
}

/// Changes the log level from now on, if logging is on.
pub(crate) fn set_level(wanted: LogLevel) {
    if IS_WRITTEN.load(Ordering::Relaxed) {
        lazy::set_level(level(wanted));
    }
}

fn text() -> EventSubscriber {
    let lines = LogLines::new(io::stderr(), text_notice, text_ids);
    Box::new(Registry::default().with(events().with_writer(lines)))
}

fn json() -> EventSubscriber {
    let lines = LogLines::new(io::stderr(), json_notice, json_ids);
    Box::new(Registry::default().with(events().json().with_writer(lines)))
}

fn events() -> Layer<Registry> {
    layer().with_target(false).with_ansi(false).log_internal_errors(false)
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// A sink that can report whether a write would block.
trait LogSink: Write {
    /// Whether a short piece can be written now.
    fn takes_more(&self) -> bool;
}

#[cfg(unix)]
fn takes_more(outlet: &impl std::os::fd::AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut asked = [PollFd::new(outlet, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // A closed pipe is also reported as writable: the write then fails immediately, which is fine.
    !matches!(poll(&mut asked, Some(&now)), Ok(0))
}

impl LogSink for Stderr {
    #[cfg(unix)]
    fn takes_more(&self) -> bool {
        takes_more(self)
    }

    #[cfg(not(unix))]
    fn takes_more(&self) -> bool {
        true
    }
}

/// Writes events as lines.
struct LogLines<W> {
    state: Mutex<LogState<W>>,
    /// The text of the line that reports dropped lines.
    lost_notice: fn(u64) -> String,
    /// Adds the ids of a trace to a line.
    add_ids: fn(&mut String, TraceContext),
}

struct LogState<W> {
    sink: W,
    /// The number of lines dropped since the last written one.
    lost_lines: u64,
    /// Whether the last line is incomplete.
    is_torn: bool,
}

fn text_notice(lost: u64) -> String {
    format!("WARN {lost} log lines were dropped because stderr was not read\n")
}

fn json_notice(lost: u64) -> String {
    format!(
        "{{\"level\":\"WARN\",\"fields\":{{\"message\":\"log lines were dropped because stderr \
            was not read\",\"lost\":{lost}}}}}\n"
    )
}

fn text_ids(line: &mut String, span: TraceContext) {
    line.truncate(line.trim_end_matches('\n').len());
    let (trace_id, span_id) = (hex(&span.trace_id), hex(&span.span_id));
    // Writing to a string cannot fail.
    let _ = writeln!(line, " trace_id={trace_id} span_id={span_id}");
}

fn json_ids(line: &mut String, span: TraceContext) {
    let Some(object) = line.trim_end_matches('\n').strip_suffix('}') else { return };
    line.truncate(object.len());
    let (trace_id, span_id) = (hex(&span.trace_id), hex(&span.span_id));
    let _ = writeln!(line, ",\"trace_id\":\"{trace_id}\",\"span_id\":\"{span_id}\"}}");
}

impl<W: LogSink> LogLines<W> {
    fn new(outlet: W, notice: fn(u64) -> String, add_ids: fn(&mut String, TraceContext)) -> Self {
        Self {
            state: Mutex::new(LogState { sink: outlet, lost_lines: 0, is_torn: false }),
            lost_notice: notice,
            add_ids,
        }
    }

    fn write_event(&self, event: &[u8]) {
        let mut line = one_line(&String::from_utf8_lossy(event));
        if let Some(span) = current_span() {
            (self.add_ids)(&mut line, span);
        }
        // A progress line would be in front of it.
        output::erase_status();
        let mut state = self.state.lock();
        let notice = (self.lost_notice)(state.lost_lines);
        if state.lost_lines > 0 && state.write_line(&notice) {
            state.lost_lines = 0;
        }
        if state.lost_lines > 0 || !state.write_line(&line) {
            state.lost_lines += 1;
        }
    }
}

impl<W: LogSink> LogState<W> {
    /// Writes as much of a line as possible without blocking. Returns whether it is complete.
    fn write_line(&mut self, line: &str) -> bool {
        if self.is_torn {
            if !self.sink.takes_more() || self.sink.write_all(b"\n").is_err() {
                return false;
            }
            self.is_torn = false;
        }
        for (number, piece) in line.as_bytes().chunks(MAX_ATOMIC_WRITE).enumerate() {
            if !self.sink.takes_more() || self.sink.write_all(piece).is_err() {
                self.is_torn = number > 0;
                return false;
            }
        }
        true
    }
}

/// An event as one line: control characters and line breaks inside it are escaped.
fn one_line(event: &str) -> String {
    let event = event.strip_suffix('\n').unwrap_or(event);
    let mut line = String::with_capacity(event.len() + 1);
    for character in event.chars() {
        match character {
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            character if is_control(character) => push_escape(&mut line, character),
            character => line.push(character),
        }
    }
    line.push('\n');
    line
}

/// Escapes as in JSON, so that a line of JSON stays valid.
fn push_escape(line: &mut String, character: char) {
    let _ = write!(line, "\\u{:04x}", u32::from(character));
}

impl<'a, W: LogSink + 'a> MakeWriter<'a> for LogLines<W> {
    type Writer = EventWriter<'a, W>;

    fn make_writer(&'a self) -> Self::Writer {
        EventWriter(self)
    }
}

/// Receives one event. The subscriber writes it in one piece.
struct EventWriter<'a, W>(&'a LogLines<W>);

impl<W: LogSink> Write for EventWriter<'_, W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.0.write_event(event);
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{PipeWriter, Read};

    use super::*;

    impl LogSink for PipeWriter {
        fn takes_more(&self) -> bool {
            takes_more(self)
        }
    }

    #[test]
    fn an_event_is_one_line_whatever_it_contains() {
        assert_eq!(
            one_line("a\nb\t\u{1b}[2J\u{9b}\u{2028}é\u{202e}\u{2066}\n"),
            "a\\nb\\t\\u001b[2J\\u009b\\u2028é\\u202e\\u2066\n"
        );
        assert_eq!(one_line(""), "\n");
    }

    #[test]
    fn a_line_of_a_sampled_call_names_its_trace() {
        let span = TraceContext::sampled([0xa1; 16], [0xb2; 8]);
        let (trace_id, span_id) = ("a1".repeat(16), "b2".repeat(8));
        let mut line = "INFO x\n".to_owned();
        text_ids(&mut line, span);
        assert_eq!(line, format!("INFO x trace_id={trace_id} span_id={span_id}\n"));
        let mut line = "{\"level\":\"INFO\",\"fields\":{}}\n".to_owned();
        json_ids(&mut line, span);
        let expected = "{\"level\":\"INFO\",\"fields\":{}";
        let ids = format!(",\"trace_id\":\"{trace_id}\",\"span_id\":\"{span_id}\"}}\n");
        assert_eq!(line, format!("{expected}{ids}"));
    }

    #[test]
    fn an_unread_log_drops_lines_instead_of_blocking() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = LogLines::new(writer, text_notice, text_ids);
        for _ in 0..2000 {
            lines.write_event(&[b'x'; 1000]);
        }
        let lost = lines.state.lock().lost_lines;
        assert!(lost > 1000, "{lost}");
        let mut seen = vec![0; 100_000];
        let count = reader.read(&mut seen).unwrap();
        assert!(count < 2_000_000);

        lines.write_event(b"read again\n");
        drop(lines);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).unwrap();
        let text = format!("\n{}read again\n", text_notice(lost));
        assert!(rest.ends_with(&text), "{rest}");
    }

    #[test]
    fn a_reader_that_went_away_does_no_harm() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let lines = LogLines::new(writer, json_notice, json_ids);
        lines.write_event(b"{}\n");
        assert_eq!(lines.state.lock().lost_lines, 1);
    }
}
