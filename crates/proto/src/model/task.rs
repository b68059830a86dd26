//! Tasks: calls that continue after their response, in one shape for both task models.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use super::{KeyedInputRequest, RelayedResult, ToolResult};
use crate::fault::Fault;

/// Whether the outcome of a call may be a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPreference {
    /// It must not.
    #[default]
    Never,
    /// The server decides (SEP-2663, capability negotiation).
    Allowed,
    /// The client requests a task (2025-11-25 schema, `TaskMetadata`).
    Requested {
        /// The requested lifetime of the task in milliseconds.
        ttl_ms: Option<u64>,
    },
}

/// A task and its state (2025-11-25 schema, `Task`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its unguessable id.
    pub id: String,
    /// Its state.
    pub state: TaskState,
    /// A description of the state.
    pub message: Option<String>,
    /// The time of its creation, in milliseconds since 1970.
    pub created_ms: u64,
    /// The time of its last change, in milliseconds since 1970.
    pub updated_ms: u64,
    /// Its lifetime in milliseconds, counted from its creation.
    pub ttl_ms: u64,
    /// The recommended polling interval in milliseconds.
    pub poll_ms: u64,
}

/// The state of a task (2025-11-25 schema, `TaskStatus`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskState {
    /// The call is running.
    Working,
    /// The call waits for responses to these input requests.
    InputRequired(Vec<KeyedInputRequest>),
    /// The call ended with this outcome.
    Ended(TaskOutcome),
    /// It was cancelled.
    Cancelled,
}

/// The outcome of a task's call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// A result, which may report a failure.
    Result(ToolResult),
    /// A relayed result.
    Relayed(RelayedResult),
    /// A fault. The revision decides whether it is reported in a result or as an error.
    Fault(Fault),
}

impl TaskState {
    /// Whether the state is final.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Cancelled)
    }
}

/// Formats a time, given in milliseconds since 1970, in UTC (RFC 3339, 5.6).
pub fn format_timestamp(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, milli) = (in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// The date of a day, counted from 1970-01-01. The computation uses years that begin in March, so that the leap day is
/// the last day of a year.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, in_era) = (days / 146_097, days % 146_097);
    let year = (in_era - in_era / 1460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc_with_leap_days() {
        assert_eq!(format_timestamp(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(format_timestamp(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(format_timestamp(1_785_196_799_999), "2026-07-27T23:59:59.999Z");
        assert_eq!(format_timestamp(4_107_542_400_001), "2100-03-01T00:00:00.001Z");
    }
}
