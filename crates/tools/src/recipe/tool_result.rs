//! Converts output and responses to tool results.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use creole::proto::wire::Raw;
use creole::{Content, Schema, ToolError, ToolResult};

use crate::ordered_value::OrderedValue;

/// Maximum size of the output of a failure that is shown, in bytes.
const MAX_SHOWN_BYTES: usize = 4096;

/// The format of a tool result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultFormat {
    /// Text.
    Text,
    /// Structured data, repeated as text.
    Json,
    /// An image of this media type.
    Image(String),
}

/// Converts bytes to a result.
pub(super) fn to_tool_result(
    shape: &ResultFormat,
    bytes: Vec<u8>,
    output: Option<&Schema>,
) -> Result<ToolResult, ToolError> {
    match shape {
        ResultFormat::Text => decode_text(bytes).map(ToolResult::text),
        ResultFormat::Json => {
            let value: OrderedValue = serde_json::from_slice(&bytes)
                .map_err(|error| ToolError::failed(format!("the output is not JSON: {error}")))?;
            structured_result(&value, output)
        }
        ResultFormat::Image(mime_type) => Ok(image_result(&bytes, mime_type)),
    }
}

/// An image as a result.
pub(super) fn image_result(bytes: &[u8], mime_type: &str) -> ToolResult {
    let (data, mime_type) = (STANDARD.encode(bytes), mime_type.to_owned());
    ToolResult { content: vec![Content::Image { data, mime_type }], ..ToolResult::default() }
}

/// Structured data as a result, if it matches the announced schema.
pub(super) fn structured_result(
    value: &OrderedValue,
    output: Option<&Schema>,
) -> Result<ToolResult, ToolError> {
    if let Some(violations) = output.and_then(|schema| schema.validate(&value.to_value()).err()) {
        let first = violations.first();
        let message = first
            .map(|violation| format!(": {} {}", violation.pointer, violation.message))
            .unwrap_or_default();
        let message = format!("the output does not match the tool's output schema{message}");
        return Err(ToolError::failed(message));
    }
    Ok(ToolResult::structured(Raw::from_value(value)))
}

fn decode_text(bytes: Vec<u8>) -> Result<String, ToolError> {
    let not_text = "the output is not UTF-8 text";
    String::from_utf8(bytes).map_err(|_| ToolError::failed(not_text))
}

/// The end of a text that is too long to be shown as a whole.
pub(super) fn tail_of(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    format!("…{}", &text[text.ceil_char_boundary(text.len() - MAX_SHOWN_BYTES)..])
}

/// The start of a text that is too long to be shown as a whole.
pub(super) fn head_of(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MAX_SHOWN_BYTES {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_SHOWN_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_requested_content_or_a_failure() {
        let text = to_tool_result(&ResultFormat::Text, b"a\n".to_vec(), None).unwrap();
        assert_eq!(text, ToolResult::text("a\n"));
        assert!(to_tool_result(&ResultFormat::Text, vec![0xff], None).is_err());
        let data =
            to_tool_result(&ResultFormat::Json, b" {\"b\": 1, \"a\":2}\n".to_vec(), None).unwrap();
        assert_eq!(data.structured.unwrap().as_str(), r#"{"b":1,"a":2}"#);
        assert!(to_tool_result(&ResultFormat::Json, b"{".to_vec(), None).is_err());
        let image =
            to_tool_result(&ResultFormat::Image("image/png".into()), vec![1, 2], None).unwrap();
        assert!(matches!(&image.content[..], [Content::Image { data, .. }] if data == "AQI="));
    }

    #[test]
    fn data_that_was_not_announced_is_a_failure() {
        let schema = Schema::new(r#"{"type":"object","required":["a"]}"#);
        assert!(to_tool_result(&ResultFormat::Json, b"{\"a\":1}".to_vec(), Some(&schema)).is_ok());
        let Err(ToolError::Failed(reason)) =
            to_tool_result(&ResultFormat::Json, b"{}".to_vec(), Some(&schema))
        else {
            panic!("it does not fit");
        };
        assert!(reason.contains("does not match"), "{reason}");
    }

    #[test]
    fn long_texts_are_cut_at_either_end() {
        let long = "ä".repeat(MAX_SHOWN_BYTES);
        assert!(tail_of(&long).len() <= MAX_SHOWN_BYTES + 3 && tail_of(&long).starts_with('…'));
        assert!(head_of(&long).len() <= MAX_SHOWN_BYTES + 3 && head_of(&long).ends_with('…'));
        assert_eq!(tail_of(" a "), "a");
    }
}
