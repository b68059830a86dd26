//! What a client asks, and on what terms.

use alloc::sync::Arc;
use core::time::Duration;

use crate::model::{ClientCapabilities, Level, Tasking};
use crate::op::{Operation, Reentry};
use crate::wire::Raw;

/// A call to be made.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked.
    pub operation: Operation,
    /// On what terms.
    pub terms: Terms,
}

impl Request {
    /// A call on the usual terms.
    pub fn new(operation: Operation) -> Self {
        Self { operation, terms: Terms::default() }
    }
}

/// On what terms a call is made. What the revision of the server cannot say is left out.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// What the caller can be asked for; a stateless server is told with each request, and an answer that asks
    /// for something else is a fault.
    pub capabilities: Arc<ClientCapabilities>,
    /// Who the caller says it is, for stateless servers; otherwise the profile's identity is told.
    pub client: Option<Raw>,
    /// The least serious log messages that are wanted; less serious ones are not handed over.
    pub log: Option<Level>,
    /// Whether progress is wanted.
    pub progress: bool,
    /// The answers and state of an earlier round.
    pub reentry: Option<Reentry>,
    /// Whether the answer may be a task.
    pub tasking: Tasking,
    /// How long the server may be silent; otherwise the profile's limit.
    pub idle: Option<Duration>,
    /// How long the call may take at all; otherwise the profile's limit.
    pub total: Option<Duration>,
    /// Further members of `_meta`: an object. Members that the protocol reserves are left out.
    pub meta: Option<Raw>,
    /// Further members of the params of a call of a tool or a prompt: an object. Members that the protocol knows are
    /// left out.
    pub params: Option<Raw>,
}
