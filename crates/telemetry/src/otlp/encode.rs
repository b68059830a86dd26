//! The export requests of the three signals.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{Metric, ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message as _;

use super::attributes::text_attribute;
use crate::semconv::SCHEMA_URL;

/// The part of every request that describes the process.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    resource: Resource,
    scope: InstrumentationScope,
}

impl Sender {
    /// A process with these attributes.
    pub(super) fn new(attributes: &[(String, String)]) -> Self {
        let attributes = attributes.iter().map(|(key, value)| text_attribute(key, value));
        let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
        let scope = InstrumentationScope {
            name: "creole".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        Self { resource, scope }
    }

    pub(super) fn spans(&self, spans: Vec<Span>) -> Vec<u8> {
        let scope_spans = vec![ScopeSpans {
            scope: Some(self.scope.clone()),
            spans,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        let resource_spans = vec![ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        ExportTraceServiceRequest { resource_spans }.encode_to_vec()
    }

    pub(super) fn metrics(&self, metrics: Vec<Metric>) -> Vec<u8> {
        let scope_metrics = vec![ScopeMetrics {
            scope: Some(self.scope.clone()),
            metrics,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        let resource_metrics = vec![ResourceMetrics {
            resource: Some(self.resource.clone()),
            scope_metrics,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        ExportMetricsServiceRequest { resource_metrics }.encode_to_vec()
    }

    pub(super) fn logs(&self, log_records: Vec<LogRecord>) -> Vec<u8> {
        let scope_logs = vec![ScopeLogs {
            scope: Some(self.scope.clone()),
            log_records,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        let resource_logs = vec![ResourceLogs {
            resource: Some(self.resource.clone()),
            scope_logs,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        ExportLogsServiceRequest { resource_logs }.encode_to_vec()
    }
}

/// The number of items that a collector did not accept, and its reason. The responses of all signals have the same form.
pub(super) fn read_rejected(response: &[u8]) -> Option<(u64, String)> {
    let partial = ExportTraceServiceResponse::decode(response).ok()?.partial_success?;
    let count = u64::try_from(partial.rejected_spans).unwrap_or_default();
    let is_said = count > 0 || !partial.error_message.is_empty();
    is_said.then_some((count, partial.error_message))
}

/// A time in nanoseconds since 1970.
pub(super) fn unix_nanos(time: std::time::SystemTime) -> u64 {
    let since = time.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
