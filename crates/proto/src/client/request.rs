//! Call requests: an operation with its options.

use alloc::sync::Arc;
use core::time::Duration;

use crate::model::{ClientCapabilities, Level, TaskPreference};
use crate::operation::{InputResponses, Operation};
use crate::wire::Raw;

/// A call to be made.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// The operation.
    pub operation: Operation,
    /// The options.
    pub options: CallOptions,
}

impl CallRequest {
    /// A call with the default options.
    pub fn new(operation: Operation) -> Self {
        Self { operation, options: CallOptions::default() }
    }
}

/// The options of a call. Options that the server's revision cannot express are omitted.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The caller's capabilities. A stateless server gets them with each request. An input request beyond them is a
    /// fault.
    pub capabilities: Arc<ClientCapabilities>,
    /// The caller's `Implementation`, for stateless servers; otherwise the profile's identity is sent.
    pub client_info: Option<Raw>,
    /// The minimum level of log messages. Less severe ones are dropped.
    pub log_level: Option<Level>,
    /// Whether progress notifications are wanted.
    pub progress: bool,
    /// The input responses and the request state of the previous round.
    pub input_responses: Option<InputResponses>,
    /// Whether the outcome may be a task.
    pub task_preference: TaskPreference,
    /// Idle timeout; defaults to the profile's limit.
    pub idle_timeout: Option<Duration>,
    /// Timeout of the whole call; defaults to the profile's limit.
    pub total_timeout: Option<Duration>,
    /// Extra members of `_meta`: an object. Members that the protocol reserves are dropped.
    pub meta: Option<Raw>,
    /// Extra members of the params of `tools/call` or `prompts/get`: an object. Members that the protocol defines are
    /// dropped.
    pub params: Option<Raw>,
}
