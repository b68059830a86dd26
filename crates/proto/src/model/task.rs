//! Tasks: calls that continue after their response, in one shape for both task models.

use alloc::string::String;
use alloc::vec::Vec;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{KeyedInputRequest, ToolResult};
use crate::fault::Fault;
use crate::operation::RelayedResult;

/// The extension that defines tasks in 2026-07-28 (SEP-2663, extension identifier).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The task support of a tool (2025-11-25 schema, `ToolExecution`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskSupport {
    /// It never runs as a task.
    #[default]
    Forbidden,
    /// It runs as a task if the client supports tasks, otherwise as a normal call.
    Optional,
    /// It always runs as a task.
    Required,
}

impl TaskSupport {
    /// The value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }

    /// Whether it is the default on the wire.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Serialize for TaskSupport {
    /// Serialises it as the tool's member `execution`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut execution = serializer.serialize_map(Some(1))?;
        execution.serialize_entry("taskSupport", self.as_str())?;
        execution.end()
    }
}

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
