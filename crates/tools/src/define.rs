//! Tools whose schemas are written out: nothing has to be derived when a server starts.

use std::sync::Arc;

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use creole::tool::Handler;
use creole::{BoxFuture, Tool, ToolError};
use serde::de::DeserializeOwned;

/// The schema of a tool that takes no arguments.
pub(crate) const NO_ARGUMENTS: &str =
    r#"{"type":"object","properties":{},"required":[],"additionalProperties":false}"#;

/// A tool whose arguments are described by a schema and read as a type.
pub(crate) fn tool<A, M, H>(name: &str, about: &str, schema: &str, handler: H) -> Tool
where
    A: DeserializeOwned + Send + 'static,
    H: Handler<A, M>,
{
    let handler = Arc::new(handler);
    Tool::raw(name, about, json(schema), move |arguments, context| -> BoxFuture<'static, _> {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let arguments = serde_json::from_value(arguments).map_err(refused)?;
            handler.run(arguments, context).await
        })
    })
}

/// JSON that is part of this program, without the whitespace that makes it readable there: lists of tools
/// are sent often.
pub(crate) fn json(text: &str) -> Raw {
    Raw::parse(&compact(text)).expect("what is written in this crate is JSON")
}

/// Leaves out the whitespace between the parts of JSON.
fn compact(text: &str) -> String {
    let (mut quoted, mut escaped) = (false, false);
    let is_kept = |letter: &char| {
        let kept = quoted || !letter.is_ascii_whitespace();
        if *letter == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = *letter == '\\' && !escaped;
        kept
    };
    text.chars().filter(is_kept).collect()
}

fn refused(error: serde_json::Error) -> ToolError {
    ToolError::Fault(Box::new(Fault::new(FaultKind::InvalidArguments, error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitespace_is_left_out_between_parts_and_kept_within_them() {
        let text = "{\n  \"a b\": \"c \\\" d\\\\\",\n  \"e\": [1, 2]\n}";
        assert_eq!(json(text).as_str(), r#"{"a b":"c \" d\\","e":[1,2]}"#);
    }
}
