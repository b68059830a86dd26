//! The header fields that a message requires (2026-07-28 basic/transports/streamable-http).

use creole::proto::http::header_value;
use serde_json::Value;

/// The member of `_meta` by which a request names its revision.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The revision that a request states in its `_meta`.
#[must_use]
pub fn claimed_version(message: &Value) -> Option<&str> {
    message["params"]["_meta"][VERSION_KEY].as_str()
}

/// The fields of a stateless request. Empty for any other message.
#[must_use]
pub fn fields(message: &Value) -> Vec<(String, String)> {
    let Some(version) = claimed_version(message) else { return Vec::new() };
    let mut fields = vec![("MCP-Protocol-Version".to_owned(), on_one_line(version))];
    let Some(method) = message["method"].as_str() else { return fields };
    fields.push(("Mcp-Method".to_owned(), on_one_line(method)));
    let params = &message["params"];
    let subject = match method {
        "tools/call" | "prompts/get" => &params["name"],
        "resources/read" => &params["uri"],
        "tasks/get" | "tasks/update" | "tasks/cancel" => &params["taskId"],
        _ => &Value::Null,
    };
    if let Some(subject) = subject.as_str() {
        fields.push(("Mcp-Name".to_owned(), header_value::encode(subject).into_owned()));
    }
    fields
}

/// These two headers have no encoding: a text that does not fit on a line is not repeated.
fn on_one_line(text: &str) -> String {
    text.chars().filter(|character| matches!(character, ' '..='~')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn named(message: &Value) -> Vec<String> {
        fields(message).into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
    }

    #[test]
    fn a_stateless_request_is_mirrored_in_its_headers() {
        let meta = json!({VERSION_KEY: "v"});
        let call = json!({"method": "tools/call", "params": {"name": "grüße", "_meta": meta}});
        let expected = ["MCP-Protocol-Version: v", "Mcp-Method: tools/call"];
        assert_eq!(named(&call)[..2], expected);
        assert_eq!(named(&call)[2], "Mcp-Name: =?base64?Z3LDvMOfZQ==?=");
        let list = json!({"method": "tools/list", "params": {"name": "x", "_meta": meta}});
        assert_eq!(named(&list), ["MCP-Protocol-Version: v", "Mcp-Method: tools/list"]);
        let task = json!({"method": "tasks/get", "params": {"taskId": "t", "_meta": meta}});
        assert_eq!(named(&task)[2], "Mcp-Name: t");
        assert!(named(&json!({"method": "ping"})).is_empty());
        assert!(named(&json!([1])).is_empty());
    }
}
