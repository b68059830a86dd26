//! The table `[telemetry]`: the export of traces, metrics and logs.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Entries, Ranged, Spanned};

/// The export of traces, metrics and logs to a collector of OpenTelemetry. The variables `OTEL_…` of the environment
/// also set it up, without this table; the values of this table win.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TelemetryTable {
    /// The URL of the collector. With `http/protobuf`, the path of each signal is appended, such as `/v1/traces`.
    /// Default: the variable `OTEL_EXPORTER_OTLP_ENDPOINT`; without either, nothing is exported.
    pub endpoint: Option<Spanned<String>>,
    /// The protocol to the collector: `http/protobuf` or `grpc`. Default: `http/protobuf`.
    pub protocol: Option<OtlpProtocol>,
    /// Headers that each request to the collector carries, such as `Authorization`.
    pub headers: Option<Spanned<Entries<Spanned<String>>>>,
    /// A file of PEM certificates: the certificate authorities that are trusted for the collector, instead of those of
    /// the system. A relative path is resolved against the folder of this file. Only with an `endpoint` that begins
    /// with `https://`.
    pub ca_file: Option<Spanned<String>>,
    /// How long a request to the collector may take, in seconds. Default: 10.
    pub timeout_seconds: Option<Ranged<1, 300>>,
    /// Attributes of this process, such as `deployment.environment.name`. `service.name` is `creole` by default.
    pub attributes: Option<Entries<Spanned<String>>>,
    /// The traces.
    pub traces: Option<TracesTable>,
    /// The metrics.
    pub metrics: Option<MetricsTable>,
    /// The export of the log.
    pub logs: Option<LogExportTable>,
}

/// The traces.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracesTable {
    /// Whether traces are exported. Default: true.
    pub otlp: Option<bool>,
    /// The share of the traces that is recorded, from 0 to 1. The sampled flag of a trusted client decides instead.
    /// Default: 0.01.
    #[schemars(with = "f64", range(min = 0, max = 1))]
    pub sample: Option<Spanned<f64>>,
    /// Whose trace context is the parent of a call. `auto`: that of an authenticated caller, and of the program that
    /// started this process; any other becomes a link. `client`: that of every client. `link`: that of no client.
    /// Default: `auto`.
    pub parent: Option<TraceParent>,
    /// Whether a failed call has a span although it was not sampled. Default: true.
    pub errors: Option<bool>,
    /// The duration in milliseconds from which a call has a span although it was not sampled. Default: 1000.
    pub slow_ms: Option<Ranged<1, 3_600_000>>,
    /// Whether spans contain the arguments and the results of tools. The `redact` layers of the server apply to them,
    /// and 8 KiB of each are kept. They may contain personal data and secrets. Default: false.
    pub payloads: Option<bool>,
    /// How spans name the caller: `none`, `hash` for a digest that tells callers apart, or `name` for its name and
    /// address. Default: `none`.
    pub principals: Option<PrincipalNamesChoice>,
}

/// The metrics.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricsTable {
    /// Whether metrics are exported to the collector. Default: true.
    pub otlp: Option<bool>,
    /// How often they are exported, in seconds. Default: 60.
    pub interval_seconds: Option<Ranged<1, 3600>>,
    /// Whether metrics about calls have the name of the tool or prompt. Default: true.
    pub tools: Option<bool>,
}

/// The export of the log.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogExportTable {
    /// Whether log events of the levels `error`, `warn` and `info` are exported to the collector. Default: false.
    pub otlp: Option<bool>,
}

/// The protocol to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum OtlpProtocol {
    /// POST with a protobuf message.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
    /// gRPC.
    #[serde(rename = "grpc")]
    Grpc,
}

/// Whose trace context is the parent of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TraceParent {
    /// That of an authenticated caller, and of the program that started this process.
    Auto,
    /// That of every client.
    Client,
    /// That of no client.
    Link,
}

/// How spans name the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PrincipalNamesChoice {
    /// Not at all.
    None,
    /// By a digest.
    Hash,
    /// By name and address.
    Name,
}
