//! Refusals: what callers get instead of an outcome.

use std::sync::Arc;

use creole::internal::scopes::insufficient_scope_fault;
use creole_gateway::layers::unknown_item_fault;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::ToolResult;
use creole_proto::operation::{Operation, Outcome, Payload};

use crate::decision::Denial;

/// The outcome for a hidden item: the same as for an unknown one.
pub(crate) fn hidden(operation: &Operation) -> Outcome {
    unknown_item_fault(operation).into()
}

/// The outcome for an item that the caller sees, but may not use like this.
pub(crate) fn denied(operation: &Operation, denial: Denial) -> Outcome {
    match operation {
        // A result, so that the model can correct itself.
        Operation::CallTool { .. } => tool_error(denial.message),
        Operation::ReadResource { .. }
        | Operation::ReadDirectory { .. }
        | Operation::Subscribe { .. } => {
            let mut fault = unknown_item_fault(operation);
            fault.kind = FaultKind::ResourceDenied;
            fault.into()
        }
        _ => Fault::new(FaultKind::InvalidParams, denial.message).into(),
    }
}

/// The outcome for a caller whose token lacks scopes.
pub(crate) fn challenged(operation: &Operation, is_task: bool, required: &[Arc<str>]) -> Outcome {
    let fault = insufficient_scope_fault(required, "the access token lacks scopes; this needs");
    match operation {
        // The response to the request was sent already, so there is no challenge.
        Operation::CallTool { .. } if is_task => {
            tool_error(format!("not allowed: {}", fault.detail))
        }
        _ => fault.with_subject(operation.target()).into(),
    }
}

/// The outcome of a method that a rule denies.
pub(crate) fn denied_method(operation: &Operation) -> Outcome {
    Fault::new(FaultKind::MethodNotFound, "").with_subject(operation.method()).into()
}

fn tool_error(message: String) -> Outcome {
    Outcome::Complete(Payload::Tool(ToolResult::error(message)))
}
