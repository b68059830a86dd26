//! Call requests: an operation with its options.

use crate::operation::{CallOptions, Operation};

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
