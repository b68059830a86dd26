//! Tasks: calls that go on after their answer, in the one shape that both kinds of tasks are written from.

use alloc::string::String;
use alloc::vec::Vec;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::{KeyedInputRequest, ToolResult};
use crate::fault::Fault;
use crate::operation::RelayedResult;

/// The name of the extension that tasks are in newer revisions.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Whether a tool runs as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskSupport {
    /// Never.
    #[default]
    Forbidden,
    /// Where the client can follow a task; otherwise in place.
    Optional,
    /// Always.
    Required,
}

impl TaskSupport {
    /// The word for it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }

    /// Whether it is what clients assume when nothing is said.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Serialize for TaskSupport {
    /// As the tool's member `execution`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut execution = serializer.serialize_map(Some(1))?;
        execution.serialize_entry("taskSupport", self.as_str())?;
        execution.end()
    }
}

/// Whether the answer to a call may be a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskPreference {
    /// It must not be.
    #[default]
    Never,
    /// The server may choose.
    Allowed,
    /// The client wants one.
    Requested {
        /// To be kept for so many milliseconds.
        ttl_ms: Option<u64>,
    },
}

/// A task and how it stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// What it is found by; nobody can guess it.
    pub id: String,
    /// How it stands.
    pub state: TaskState,
    /// The same in words, for people.
    pub message: Option<String>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// How long it is kept after its creation.
    pub ttl_ms: u64,
    /// How long a client should wait between two looks.
    pub poll_ms: u64,
}

/// How a task stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskState {
    /// It is worked on.
    Working,
    /// It waits for answers to these questions.
    InputRequired(Vec<KeyedInputRequest>),
    /// It is over; this is what its call came to.
    Ended(TaskOutcome),
    /// It was cancelled.
    Cancelled,
}

/// What a task's call came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TaskOutcome {
    /// A result, which may tell of a failure.
    Result(ToolResult),
    /// Another server's result.
    Relayed(RelayedResult),
    /// A fault; the revision says whether it is told as a result or as an error.
    Fault(Fault),
}

impl TaskState {
    /// Whether nothing can happen to it any more.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Ended(_) | Self::Cancelled)
    }
}
