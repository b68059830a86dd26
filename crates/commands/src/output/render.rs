//! Renders results of servers as text.

use std::io;
use std::io::IsTerminal;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::output;

/// The content blocks of a result, one below the other.
pub(crate) fn blocks(content: &Value) -> String {
    let blocks: Vec<String> = content.as_array().into_iter().flatten().map(block).collect();
    blocks.join("\n")
}

/// One block of content.
pub(crate) fn block(block: &Value) -> String {
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match block["type"].as_str() {
        Some("text") => text("text").to_owned(),
        Some("image" | "audio") => data(text("type"), text("mimeType"), text("data")),
        Some("resource_link") => link(block),
        Some("resource") => contents(&block["resource"]),
        _ => block.to_string(),
    }
}

fn link(block: &Value) -> String {
    let text = |key: &str| block[key].as_str();
    let name = text("title").or_else(|| text("name")).unwrap_or("link");
    let about = text("description").map(|about| format!(": {about}")).unwrap_or_default();
    format!("{name} <{}>{about}", text("uri").unwrap_or_default())
}

/// One part of a resource.
pub(crate) fn contents(part: &Value) -> String {
    match (part["text"].as_str(), part["blob"].as_str()) {
        (Some(text), _) => text.to_owned(),
        (None, Some(blob)) => {
            let kind = part["mimeType"].as_str().unwrap_or_default();
            data(part["uri"].as_str().unwrap_or("resource"), kind, blob)
        }
        (None, None) => part.to_string(),
    }
}

/// A description of binary data, which no terminal should show.
fn data(description: &str, kind: &str, encoded: &str) -> String {
    let size = decoded(encoded).map_or(0, |bytes| bytes.len());
    let kind = if kind.is_empty() { "bytes".to_owned() } else { format!("bytes of {kind}") };
    format!("[{description}: {size} {kind}; --json prints them]")
}

/// Decodes base64.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD.decode(text).ok()
}

/// Text of a server for stdout: unchanged for pipes, escaped for terminals, and with a line end.
pub(crate) fn for_stdout(text: &str) -> String {
    let mut text = match io::stdout().is_terminal() {
        true => output::printable(text),
        false => text.to_owned(),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The first line of a text.
pub(crate) fn first_line(text: &str) -> String {
    output::printable(text.trim().lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_content_has_a_text() {
        let content = json!([
            {"type": "text", "text": "hello"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource_link", "uri": "a:b", "name": "n", "description": "d"},
            {"type": "resource", "resource": {"uri": "a:c", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "a:d", "blob": "AAA="}},
            {"type": "new"}
        ]);
        let expected = "\
hello
[image: 3 bytes of image/png; --json prints them]
n <a:b>: d
inside
[a:d: 2 bytes; --json prints them]
{\"type\":\"new\"}";
        assert_eq!(blocks(&content), expected);
    }

    #[test]
    fn a_description_is_shortened_to_its_first_line() {
        assert_eq!(first_line("\n Adds.\nAnd more."), "Adds.");
    }
}
