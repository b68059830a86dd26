//! What an operation is about, and the answer to one about something that is not there.

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::{ListKind, Reference};
use creole_proto::operation::Operation;
use creole_proto::wire::Raw;
use serde_json::json;

/// The item that an operation is about. Templates are told by their uri templates.
pub(crate) fn item_of(operation: &Operation) -> Option<(ListKind, &str)> {
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

/// What is answered to an operation about something that is withheld: the same as if it had never been, but for
/// resources in a dialect that has a code for these.
pub(crate) fn withheld_fault(operation: &Operation) -> Fault {
    let fault = unknown_item_fault(operation);
    match fault.kind {
        FaultKind::ResourceNotFound => Fault { kind: FaultKind::ResourceDenied, ..fault },
        _ => fault,
    }
}

/// What is answered to an operation about something that is not there: the same as if it had never been.
pub(crate) fn unknown_item_fault(operation: &Operation) -> Fault {
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
            let detail = "`ref` names no prompt or resource template of this server";
            Fault::new(FaultKind::InvalidParams, detail)
        }
        _ => {
            let data = Raw::from_value(&json!({ "uri": target }));
            Fault::new(FaultKind::ResourceNotFound, "").with_subject(target).with_data(data)
        }
    }
}
