//! Resources: a text, an image and a template. The module `changing` has the one for subscriptions.

use creole::{Contents, Resource, Server, Template, ToolError, Variables};
use serde_json::json;

use crate::packs::everything::content::PNG;

pub(crate) fn add(server: Server) -> Server {
    let text = "This is the content of the static text resource.";
    let text = Resource::text("test://static-text", "static-text", "text/plain", text)
        .about("A fixed text");
    let picture = Resource::new("test://static-binary", "static-binary", |uri, _| async move {
        Ok(vec![Contents::blob(uri, "image/png", PNG)])
    })
    .about("A fixed picture")
    .mime_type("image/png");
    let family =
        Template::new("test://template/{id}/data", "template", |uri, variables, _| async move {
            read(uri, &variables)
        })
        .about("Data for any id")
        .mime_type("application/json")
        .complete("id", |typed, _| async move { complete_from(&typed, &["123", "124", "456"]) });
    server.resource(text).resource(picture).template(family)
}

fn read(uri: String, variables: &Variables) -> Result<Vec<Contents>, ToolError> {
    let id = variables.get("id").map(String::as_str).unwrap_or_default();
    let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
    Ok(vec![Contents::text(uri, "application/json", data.to_string())])
}

/// The values that begin with the typed text.
pub(crate) fn complete_from(typed: &str, values: &[&str]) -> Vec<String> {
    values.iter().filter(|value| value.starts_with(typed)).map(ToString::to_string).collect()
}
