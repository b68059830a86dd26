//! The packs that need no configuration.

pub(crate) mod calculate;
pub(crate) mod everything;
pub(crate) mod guide;
pub(crate) mod simple;
pub(crate) mod tasks;

use std::sync::Arc;

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use creole::{BoxFuture, Handler, Tool, ToolError};
use serde::de::DeserializeOwned;

/// The schema of a tool that takes no arguments.
const NO_ARGUMENTS: &str =
    r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;

/// A tool with a literal schema, so that no schema is derived when a server starts. Its arguments are decoded as a type.
fn tool<A, M, H>(name: &str, about: &str, schema: &'static str, handler: H) -> Tool
where
    A: DeserializeOwned + Send + 'static,
    H: Handler<A, M>,
{
    let handler = Arc::new(handler);
    Tool::raw(
        name,
        about,
        Raw::from_static(schema),
        move |arguments, context| -> BoxFuture<'static, _> {
            let handler = Arc::clone(&handler);
            Box::pin(async move {
                let arguments = serde_json::from_value(arguments).map_err(invalid_arguments)?;
                handler.run(arguments, context).await
            })
        },
    )
}

fn invalid_arguments(error: serde_json::Error) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(FaultKind::InvalidArguments, error.to_string())))
}
