//! Exports the telemetry of a server: metrics as Prometheus text, and spans, metrics and logs over OTLP.

#[doc(hidden)]
pub mod documents;
pub mod otlp;
pub mod process;
pub mod prometheus;
mod semconv;
