//! The log of requests: one event when a request arrives, one when it is done, one for each tool that ran.
//!
//! Arguments and results are not part of it. Methods, ids and names are the client's text and are escaped by the
//! subscriber.

use std::time::Duration;

use creole_proto::operation::{Operation, Outcome, Payload};
use creole_proto::server::{Observation, RequestEnd};
use tracing::{Level, enabled, info};

/// The target of all events about requests.
pub(crate) const TARGET: &str = "creole::request";

/// Whether request events are enabled.
pub(crate) fn is_enabled() -> bool {
    enabled!(target: TARGET, Level::INFO)
}

/// Logs an observation of the protocol machine.
pub(crate) fn record_observation(observation: &Observation) {
    match observation {
        Observation::Received { method, id } => {
            info!(target: TARGET, method, id, "request received");
        }
        Observation::Done { method, id, duration: took, end } => {
            let duration_us = microseconds(*took);
            match end {
                RequestEnd::Success => {
                    info!(target: TARGET, method, id, duration_us, outcome = "success", "request completed");
                }
                RequestEnd::Error(kind) => {
                    let error = kind.name();
                    info!(target: TARGET, method, id, duration_us, outcome = "error", error, "request completed");
                }
                RequestEnd::Cancelled => {
                    info!(target: TARGET, method, id, duration_us, outcome = "cancelled", "request completed");
                }
            }
        }
        // It belongs to the telemetry: the log has `Received` and `Done` for the same request.
        Observation::Answered { .. } | Observation::Notified { .. } => {}
        Observation::Refused { kind, .. } => {
            info!(target: TARGET, error = kind.name(), "message refused");
        }
    }
}

/// Logs that a tool ran.
pub(crate) fn tool_ran(tool: &str, took: Duration, outcome: &Outcome) {
    let duration_us = microseconds(took);
    let outcome = match outcome {
        Outcome::Complete(Payload::Tool(result)) if result.is_error => "error",
        Outcome::Complete(_) => "success",
        Outcome::InputRequired { .. } => "input_required",
        Outcome::Detach(_) => "task",
        Outcome::Fail(_) => "error",
    };
    info!(target: TARGET, tool, duration_us, outcome, "tool invoked");
}

/// The tool of a call, if it has one and request events are enabled.
pub(crate) fn observed_tool(operation: &Operation) -> Option<String> {
    match operation {
        Operation::CallTool { name, .. } if is_enabled() => Some(name.clone()),
        _ => None,
    }
}

/// Logs a whole message, if that is enabled: it may hold secrets.
pub(crate) fn log_payload(direction: &str, message: &[u8]) {
    let frame = String::from_utf8_lossy(message);
    tracing::info!(target: "creole::payload", direction, frame = &*frame, "message");
}

fn microseconds(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}
