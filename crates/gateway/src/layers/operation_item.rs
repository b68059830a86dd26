//! The item that an operation addresses, and the faults for items that are unknown or withheld.

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{ListKind, Reference};
use creole_proto::operation::Operation;
use creole_proto::wire::Raw;
use serde_json::json;

/// The item that an operation addresses. Templates are identified by their URI templates.
pub fn item_of(operation: &Operation) -> Option<(ListKind, &str)> {
    Some(match operation {
        Operation::CallTool { name, .. } => (ListKind::Tools, name),
        Operation::GetPrompt { name, .. } => (ListKind::Prompts, name),
        Operation::ReadResource { uri }
        | Operation::ReadDirectory { uri, .. }
        | Operation::Subscribe { uri }
        | Operation::Unsubscribe { uri } => (ListKind::Resources, uri),
        Operation::GetSkill { uri } => (ListKind::Skills, uri),
        Operation::Complete(request) => match &request.reference {
            Reference::Prompt(name) => (ListKind::Prompts, name),
            Reference::Resource(uri) => (ListKind::Templates, uri),
        },
        _ => return None,
    })
}

/// The fault of an operation on a withheld item: the same as for an unknown item, except for resources in a dialect
/// that has an error code for denial.
pub(crate) fn withheld_fault(operation: &Operation) -> Fault {
    let mut fault = unknown_item_fault(operation);
    if fault.kind == FaultKind::ResourceNotFound {
        fault.kind = FaultKind::ResourceDenied;
    }
    fault
}

/// The fault of an operation on an unknown item.
pub fn unknown_item_fault(operation: &Operation) -> Fault {
    let target = operation.target();
    match operation {
        Operation::CallTool { .. } => Fault::new(FaultKind::UnknownTool, "").with_subject(target),
        Operation::GetPrompt { .. } => {
            Fault::new(FaultKind::UnknownPrompt, "").with_subject(target)
        }
        Operation::GetSkill { .. } => {
            let detail =
                format!("no skill is served at {}", target.chars().take(256).collect::<String>());
            Fault::new(FaultKind::InvalidParams, detail)
        }
        Operation::Complete(_) => {
            let detail = "`ref` is not a prompt or resource template of this server";
            Fault::new(FaultKind::InvalidParams, detail)
        }
        _ => {
            let data = Raw::from_value(&json!({ "uri": target }));
            Fault::new(FaultKind::ResourceNotFound, "").with_subject(target).with_data(data)
        }
    }
}
