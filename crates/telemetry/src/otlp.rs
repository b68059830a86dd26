//! Exports spans, metrics and log records over OTLP: http/protobuf or gRPC.
//!
//! Calls only put what they did into a queue. One task for each signal makes messages of it and sends them. A collector
//! that does not answer costs calls nothing: what the queue does not hold is dropped and counted.

mod attributes;
mod backoff;
mod batches;
mod client;
mod encode;
mod export;
mod grpc;
mod logs;
mod metrics;
mod payload;
mod queue;
mod settings;
mod span_reader;
mod spans;

pub use export::OtlpExport;
pub use logs::{LogEntry, LogSender};
pub use settings::{
    BatchSettings, OtlpCollector, OtlpSettings, PrincipalNames, Protocol, Signal, SpanSettings,
};
