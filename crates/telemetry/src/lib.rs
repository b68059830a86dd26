//! Exports the telemetry of a server: metrics as Prometheus text, and spans, metrics and logs over OTLP.

pub mod prometheus;
