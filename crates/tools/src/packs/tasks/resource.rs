//! Each task as a resource, `task://{id}`.

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use creole::{Contents, Template, ToolError, Variables};
use serde_json::json;

use crate::packs::tasks::store::Store;

const MIME_TYPE: &str = "application/json";

/// Maximum number of ids in a completion.
const MAX_IDS: usize = 1000;

/// The URI of a task.
pub(crate) fn uri(id: &str) -> String {
    format!("task://{id}")
}

pub(crate) fn template(store: Store) -> Template {
    let proposing = store.clone();
    let template = Template::new("task://{id}", "task", move |uri, variables, _| {
        let store = store.clone();
        async move { read(&store, &uri, &variables).await }
    });
    template.about("A task as JSON").mime_type(MIME_TYPE).complete("id", move |typed, _| {
        let store = proposing.clone();
        // A failed completion has no values. Reading the task reports the error.
        async move { store.ids(typed, MAX_IDS).await.unwrap_or_default() }
    })
}

async fn read(store: &Store, uri: &str, variables: &Variables) -> Result<Vec<Contents>, ToolError> {
    let id = variables.get("id").map(String::as_str).unwrap_or_default();
    match store.task(id).await? {
        Some(task) => Ok(vec![Contents::text(uri, MIME_TYPE, task.to_json())]),
        None => {
            let fault = Fault::new(FaultKind::ResourceNotFound, "").with_subject(uri);
            Err(ToolError::Fault(Box::new(fault.with_data(Raw::from_value(&json!({"uri": uri}))))))
        }
    }
}
