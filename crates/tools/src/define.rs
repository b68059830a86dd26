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

/// Leaves out the whitespace between the parts of JSON. Every start of a server pays for it, so it goes
/// from quote to quote and not from letter to letter.
fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let mut quoted = false;
    for part in text.split_inclusive('"') {
        if quoted {
            compact.push_str(part);
            quoted = !ends_string(part);
        } else {
            part.split_ascii_whitespace().for_each(|word| compact.push_str(word));
            quoted = true;
        }
    }
    compact
}

/// Whether the quote at the end of a part of a string is its end: no odd number of backslashes before it.
fn ends_string(part: &str) -> bool {
    let inner = part.strip_suffix('"').unwrap_or(part);
    (inner.len() - inner.trim_end_matches('\\').len()).is_multiple_of(2)
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
