//! What is exported, and where to.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Uri};

/// What a process exports. A signal without a collector is not exported.
#[derive(Clone, Debug, Default)]
pub struct OtlpSettings {
    /// The attributes of the process, such as `service.name`.
    pub resource: Vec<(String, String)>,
    /// The export of spans.
    pub traces: Option<(OtlpCollector, SpanSettings)>,
    /// The export of metrics, and how often.
    pub metrics: Option<(OtlpCollector, Duration)>,
    /// The export of log records.
    pub logs: Option<(OtlpCollector, BatchSettings)>,
}

/// A signal of OpenTelemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Spans.
    Traces,
    /// Metrics.
    Metrics,
    /// Log records.
    Logs,
}

impl Signal {
    /// Its name in metrics and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// Its path below the endpoint of http/protobuf.
    pub fn http_path(self) -> &'static str {
        match self {
            Self::Traces => "/v1/traces",
            Self::Metrics => "/v1/metrics",
            Self::Logs => "/v1/logs",
        }
    }

    /// The path of its gRPC method.
    pub fn grpc_path(self) -> &'static str {
        match self {
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        }
    }
}

/// The protocol to a collector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// POST with a protobuf message.
    #[default]
    HttpProtobuf,
    /// gRPC.
    Grpc,
}

/// A collector of one signal.
#[derive(Clone)]
pub struct OtlpCollector {
    /// The URL of the signal, with its path.
    pub url: Uri,
    /// The protocol.
    pub protocol: Protocol,
    /// The headers of every request. They may be secrets.
    pub headers: HeaderMap,
    /// The trusted root certificates in PEM form, if they are not the system's.
    pub certificates: Option<Arc<[u8]>>,
    /// How long a request may take.
    pub timeout: Duration,
}

impl OtlpCollector {
    /// A collector. The values of the headers count as secrets.
    ///
    /// # Errors
    /// With the reason, when the URL or a header is not valid.
    pub fn new<'a>(
        url: &str,
        protocol: Protocol,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
        certificates: Option<Arc<[u8]>>,
        timeout: Duration,
    ) -> Result<Self, String> {
        let url = url.parse().map_err(|_| format!("the URL `{url}` is not valid"))?;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let invalid = || format!("the header `{name}` is not valid");
            let key: HeaderName = name.parse().map_err(|_| invalid())?;
            let mut value = HeaderValue::from_str(value).map_err(|_| invalid())?;
            value.set_sensitive(true);
            map.append(key, value);
        }
        Ok(Self { url, protocol, headers: map, certificates, timeout })
    }
}

/// Shows neither headers nor the user information of the URL.
impl fmt::Debug for OtlpCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OtlpCollector")
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// How items are queued and sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchSettings {
    /// The number of items that may wait. More are dropped.
    pub max_queue: usize,
    /// The number of items of one request.
    pub max_batch: usize,
    /// How long an item waits for others.
    pub delay: Duration,
}

impl Default for BatchSettings {
    fn default() -> Self {
        Self { max_queue: 2048, max_batch: 512, delay: Duration::from_secs(5) }
    }
}

/// What spans contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanSettings {
    /// How spans are queued.
    pub batches: BatchSettings,
    /// Whether spans have the arguments and results of tools.
    pub has_payloads: bool,
    /// How spans name who called.
    pub principals: PrincipalNames,
    /// Whether a failed call has a span although it was not sampled.
    pub keeps_errors: bool,
    /// The duration from which a call has a span although it was not sampled.
    pub slow: Option<Duration>,
}

/// How spans name who called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrincipalNames {
    /// Not at all.
    #[default]
    None,
    /// By a digest, which tells callers apart.
    Hash,
    /// By name, with the address of the client.
    Name,
}
