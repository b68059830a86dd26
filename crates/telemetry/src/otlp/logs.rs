//! Log records: events of the program, and lines of the audit log.

use std::fmt;
use std::time::SystemTime;

use creole::internal::telemetry::trace::{TraceContext, TraceId, current_span};
use opentelemetry_proto::tonic::common::v1::AnyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, SeverityNumber};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::attributes::{Attributes, shorten};
use super::batches::MakeMessages;
use super::encode::{Sender, unix_nanos};
use super::queue::QueueSender;

/// The maximum length of the text of a log record in bytes.
const MAX_BODY: usize = 64 * 1024;

/// The start of the targets whose events are not exported: those of the exporter would follow one another for ever.
const OWN_TARGET: &str = "creole_telemetry";

/// The target of events with whole messages, which may contain secrets. They stay in the log of this machine.
const PAYLOAD_TARGET: &str = "creole::payload";

/// A log record that another part of the program makes.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// When it happened.
    pub time: SystemTime,
    /// Its name, such as `creole.audit`.
    pub event_name: &'static str,
    /// Its text.
    pub body: Box<str>,
    /// The trace that it belongs to.
    pub trace_id: Option<TraceId>,
}

/// Puts log records into the queue of the export. Clones share it. It never waits.
#[derive(Clone)]
pub struct LogSender {
    pub(super) queue: QueueSender<Box<LogRecord>>,
}

impl LogSender {
    /// Exports a record; returns whether there was room for it.
    pub fn send(&self, entry: LogEntry) -> bool {
        let time = unix_nanos(entry.time);
        let body = text_value(&entry.body);
        self.push(LogRecord {
            time_unix_nano: time,
            observed_time_unix_nano: time,
            severity_number: SeverityNumber::Info.into(),
            severity_text: "INFO".to_owned(),
            body: Some(body),
            trace_id: entry.trace_id.map(|id| id.to_vec()).unwrap_or_default(),
            event_name: entry.event_name.to_owned(),
            ..LogRecord::default()
        })
    }

    /// Exports an event of the program, if it is at least as severe as `info`.
    pub fn send_event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let target = metadata.target();
        if *metadata.level() > Level::INFO
            || target.starts_with(OWN_TARGET)
            || target == PAYLOAD_TARGET
        {
            return;
        }
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let time = unix_nanos(SystemTime::now());
        let span = current_span();
        self.push(LogRecord {
            time_unix_nano: time,
            observed_time_unix_nano: time,
            severity_number: severity(*metadata.level()).into(),
            severity_text: metadata.level().as_str().to_owned(),
            body: Some(text_value(&fields.message)),
            attributes: fields.attributes.into_list(),
            flags: span.map(|span| u32::from(span.flags)).unwrap_or_default(),
            trace_id: span
                .map(|TraceContext { trace_id, .. }| trace_id.to_vec())
                .unwrap_or_default(),
            span_id: span.map(|TraceContext { span_id, .. }| span_id.to_vec()).unwrap_or_default(),
            ..LogRecord::default()
        });
    }

    fn push(&self, record: LogRecord) -> bool {
        self.queue.push(Box::new(record), 1)
    }
}

impl fmt::Debug for LogSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LogSender").finish_non_exhaustive()
    }
}

fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    }
}

fn text_value(text: &str) -> AnyValue {
    AnyValue { value: Some(Value::StringValue(shorten(text, MAX_BODY).to_owned())) }
}

/// The fields of an event.
#[derive(Default)]
struct EventFields {
    message: String,
    attributes: Attributes,
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        self.record_str(field, &text);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.attributes.text(name, value),
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.attributes.number(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(value) => self.attributes.number(field.name(), value),
            Err(_) => self.attributes.text(field.name(), &value.to_string()),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.attributes.value(field.name(), Value::BoolValue(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.attributes.value(field.name(), Value::DoubleValue(value));
    }
}

/// Makes requests of log records.
pub(super) struct LogMessages(pub(super) Sender);

impl MakeMessages for LogMessages {
    type Item = Box<LogRecord>;
    type Message = LogRecord;

    fn messages(&mut self, item: Box<LogRecord>, into: &mut Vec<LogRecord>) {
        into.push(*item);
    }

    fn request(&mut self, messages: Vec<LogRecord>) -> Vec<u8> {
        self.0.logs(messages)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use creole::internal::telemetry::trace::CurrentSpan;
    use tracing::span::{Attributes as SpanAttributes, Id, Record};
    use tracing::subscriber::with_default;
    use tracing::{Metadata, Subscriber};

    use super::super::queue::queue;
    use super::*;

    /// Passes every event to the sender.
    struct Events(Mutex<LogSender>);

    impl Subscriber for Events {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().send_event(event);
        }

        fn new_span(&self, _: &SpanAttributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn an_event_becomes_a_record_with_its_trace() {
        let (sender, mut receiver) = queue(10, 10);
        let sender = LogSender { queue: sender };
        with_default(Events(Mutex::new(sender.clone())), || {
            let _span = CurrentSpan::enter(TraceContext::sampled([1; 16], [2; 8]));
            tracing::warn!(target: "creole::x", tool = "echo", count = 3, slow = true, "it {}", "broke");
            tracing::debug!(target: "creole::x", "not exported");
            tracing::info!(target: "creole_telemetry::otlp", "not exported");
            tracing::info!(target: "creole::payload", "not exported");
        });
        let record = receiver.next().unwrap();
        assert_eq!((record.severity_number, record.severity_text.as_str()), (13, "WARN"));
        assert_eq!(record.body, Some(text_value("it broke")));
        assert_eq!((record.trace_id.len(), record.span_id.len(), record.flags), (16, 8, 1));
        let keys: Vec<&str> = record.attributes.iter().map(|it| &*it.key).collect();
        assert_eq!(keys, ["tool", "count", "slow"]);
        assert!(receiver.next().is_none());
    }

    #[test]
    fn a_full_queue_says_so() {
        let (sender, mut receiver) = queue(1, 1);
        let sender = LogSender { queue: sender };
        let entry = LogEntry {
            time: SystemTime::UNIX_EPOCH,
            event_name: "creole.audit",
            body: "{}".into(),
            trace_id: Some([3; 16]),
        };
        assert!(sender.send(entry.clone()) && !sender.send(entry));
        let record = receiver.next().unwrap();
        assert_eq!(
            (record.event_name.as_str(), &record.trace_id[..]),
            ("creole.audit", &[3; 16][..])
        );
    }
}
