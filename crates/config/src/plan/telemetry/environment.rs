//! The variables `OTEL_…` (OpenTelemetry, SDK environment variables).

use std::cell::RefCell;
use std::time::Duration;

use creole_telemetry::otlp::{BatchSettings, Protocol, Signal};

use crate::syntax::environment::Lookup;

/// How often metrics are exported by default.
const METRIC_INTERVAL: Duration = Duration::from_secs(60);

/// The largest queue and batch, in items.
const MAX_ITEMS: u64 = 65_536;

/// The longest time of a variable, in milliseconds.
const MAX_MILLIS: u64 = 3_600_000;

/// Reads the variables, and collects what was wrong with them.
pub(super) struct OtelVariables<'a> {
    lookup: Lookup<'a>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> OtelVariables<'a> {
    pub(super) fn new(lookup: Lookup<'a>) -> Self {
        Self { lookup, warnings: RefCell::default() }
    }

    /// The value of a variable. An empty one counts as unset.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name).ok().filter(|value| !value.trim().is_empty())
    }

    /// The value of `OTEL_EXPORTER_OTLP_TRACES_NAME`, else that of `OTEL_EXPORTER_OTLP_NAME`, with its variable.
    pub(super) fn exporter(&self, signal: Signal, name: &str) -> Option<(String, String)> {
        let general = format!("OTEL_EXPORTER_OTLP_{name}");
        self.signal(signal, name).or_else(|| Some((self.get(&general)?, general)))
    }

    /// The value of `OTEL_EXPORTER_OTLP_TRACES_NAME`, with its variable.
    pub(super) fn signal(&self, signal: Signal, name: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{name}", upper(signal));
        Some((self.get(&own)?, own))
    }

    /// Reports that a variable cannot be used. Its value may be a secret.
    pub(super) fn warn(&self, name: &str, reason: &str) {
        let warning = format!("the variable {name} is ignored: {reason}");
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// Whether `OTEL_SDK_DISABLED` switches everything off.
    pub(super) fn is_disabled(&self) -> bool {
        self.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    /// Whether the environment alone switches the export of a signal on.
    pub(super) fn exports(&self, signal: Signal) -> bool {
        self.exporter_names(signal).is_none_or(|is_otlp| is_otlp)
            && self.exporter(signal, "ENDPOINT").is_some()
    }

    /// Whether the environment wants the events of the log: most programs keep them local.
    pub(super) fn wants_logs(&self) -> bool {
        match self.exporter_names(Signal::Logs) {
            Some(is_otlp) => is_otlp,
            None => self.signal(Signal::Logs, "ENDPOINT").is_some(),
        }
    }

    /// Whether `OTEL_TRACES_EXPORTER` names the exporter of OTLP, if it is set.
    fn exporter_names(&self, signal: Signal) -> Option<bool> {
        let name = format!("OTEL_{}_EXPORTER", upper(signal));
        let value = self.get(&name)?;
        let is_otlp = value.split(',').any(|one| one.trim() == "otlp");
        if !is_otlp && value.trim() != "none" {
            self.warn(&name, "only `otlp` and `none` are supported");
        }
        Some(is_otlp)
    }

    /// The protocol for a signal.
    pub(super) fn protocol(&self, signal: Signal) -> Option<Protocol> {
        let (value, name) = self.exporter(signal, "PROTOCOL")?;
        match &*value {
            "http/protobuf" => Some(Protocol::HttpProtobuf),
            "grpc" => Some(Protocol::Grpc),
            _ => {
                self.warn(&name, "only `http/protobuf` and `grpc` are supported");
                None
            }
        }
    }

    /// The time of a variable in milliseconds.
    pub(super) fn millis(&self, name: &str) -> Option<Duration> {
        self.number(name, MAX_MILLIS).map(Duration::from_millis)
    }

    fn number(&self, name: &str, most: u64) -> Option<u64> {
        let value = self.get(name)?;
        match value.trim().parse() {
            Ok(number) if (1..=most).contains(&number) => Some(number),
            _ => {
                self.warn(name, &format!("it is no number from 1 to {most}"));
                None
            }
        }
    }

    /// How often metrics are exported.
    pub(super) fn metric_interval(&self) -> Duration {
        self.millis("OTEL_METRIC_EXPORT_INTERVAL").unwrap_or(METRIC_INTERVAL)
    }

    /// How items are queued: the prefix is `OTEL_BSP` for spans and `OTEL_BLRP` for log records.
    pub(super) fn batches(&self, prefix: &str) -> BatchSettings {
        let usual = BatchSettings::default();
        let items = |name: &str, usual: usize| {
            let number = self.number(&format!("{prefix}_{name}"), MAX_ITEMS);
            number.and_then(|number| usize::try_from(number).ok()).unwrap_or(usual)
        };
        let max_queue = items("MAX_QUEUE_SIZE", usual.max_queue);
        BatchSettings {
            max_queue,
            max_batch: items("MAX_EXPORT_BATCH_SIZE", usual.max_batch).min(max_queue),
            delay: self.millis(&format!("{prefix}_SCHEDULE_DELAY")).unwrap_or(usual.delay),
        }
    }

    /// The attributes of the process.
    pub(super) fn resource(&self) -> Vec<(String, String)> {
        let name = self.get("OTEL_SERVICE_NAME").map(|name| ("service.name".to_owned(), name));
        let variable = "OTEL_RESOURCE_ATTRIBUTES";
        let listed = self.get(variable).map(|text| self.pairs(variable, &text));
        name.into_iter().chain(listed.unwrap_or_default()).collect()
    }

    /// Pairs of the form `key=value,key=value`, whose values are percent-encoded.
    pub(super) fn pairs(&self, name: &str, text: &str) -> Vec<(String, String)> {
        let pair = |member: &str| {
            let (key, value) = member.split_once('=')?;
            let key = key.trim();
            (!key.is_empty()).then_some(())?;
            Some((key.to_owned(), decode_percent(value.trim())?))
        };
        let members = text.split(',').filter(|member| !member.trim().is_empty());
        let pairs: Option<Vec<_>> = members.map(pair).collect();
        pairs.unwrap_or_else(|| {
            self.warn(name, "it is no list of the form `key=value,key=value`");
            Vec::new()
        })
    }

    pub(super) fn into_warnings(self) -> Vec<String> {
        self.warnings.into_inner()
    }
}

/// The name of a signal in variables.
fn upper(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "TRACES",
        Signal::Metrics => "METRICS",
        Signal::Logs => "LOGS",
    }
}

fn decode_percent(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = str::from_utf8(tail.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
}
