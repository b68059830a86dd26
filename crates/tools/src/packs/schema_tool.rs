//! Tools with literal schemas, so that no schema is derived when a server starts.

use std::sync::Arc;

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use creole::{BoxFuture, Handler, Tool, ToolError};
use serde::de::DeserializeOwned;

/// The schema of a tool that takes no arguments.
pub(crate) const NO_ARGUMENTS: &str =
    r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;

/// A tool whose arguments are described by a schema and decoded as a type.
pub(crate) fn tool<A, M, H>(name: &str, about: &str, schema: &'static str, handler: H) -> Tool
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
