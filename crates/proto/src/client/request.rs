//! What a client asks, and on what terms.

use alloc::sync::Arc;
use core::time::Duration;

use crate::model::{ClientCapabilities, Level, TaskPreference};
use crate::operation::{InputResponses, Operation};
use crate::wire::Raw;

/// A call to be made.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// What is asked.
    pub operation: Operation,
    /// On what terms.
    pub options: CallOptions,
}

impl CallRequest {
    /// A call on the usual terms.
    pub fn new(operation: Operation) -> Self {
        Self { operation, options: CallOptions::default() }
    }
}

/// On what terms a call is made. What the revision of the server cannot say is left out.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// What the caller can be asked for; a stateless server is told with each request, and an answer that asks
    /// for something else is a fault.
    pub capabilities: Arc<ClientCapabilities>,
    /// Who the caller says it is, for stateless servers; otherwise the profile's identity is told.
    pub client_info: Option<Raw>,
    /// The least serious log messages that are wanted; less serious ones are not handed over.
    pub log_level: Option<Level>,
    /// Whether progress is wanted.
    pub progress: bool,
    /// The answers and state of an earlier round.
    pub input_responses: Option<InputResponses>,
    /// Whether the answer may be a task.
    pub task_preference: TaskPreference,
    /// How long the server may be silent; otherwise the profile's limit.
    pub idle_timeout: Option<Duration>,
    /// How long the call may take at all; otherwise the profile's limit.
    pub total_timeout: Option<Duration>,
    /// Further members of `_meta`: an object. Members that the protocol reserves are left out.
    pub meta: Option<Raw>,
    /// Further members of the params of a call of a tool or a prompt: an object. Members that the protocol knows are
    /// left out.
    pub params: Option<Raw>,
}
