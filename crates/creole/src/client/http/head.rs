//! The headers of a request to a server: they repeat what the body says.

use creole_proto::http::field;
use creole_proto::http::head::{METHOD, NAME, SESSION, VERSION};
use creole_proto::wire::{Frame, Limits, Object, scan, unquote};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// What every POST has, and every other request that belongs to the session.
pub(super) fn common(session: Option<&HeaderValue>, version: Option<&HeaderValue>) -> HeaderMap {
    let mut head = HeaderMap::with_capacity(8);
    head.insert(CONTENT_TYPE, JSON);
    head.insert(ACCEPT, BOTH);
    if let Some(session) = session {
        head.insert(SESSION, session.clone());
    }
    if let Some(version) = version {
        head.insert(VERSION, version.clone());
    }
    head
}

/// The same head for a request that only listens.
pub(super) fn listening(mut head: HeaderMap) -> HeaderMap {
    head.remove(CONTENT_TYPE);
    head.insert(ACCEPT, EVENTS);
    head
}

/// Adds what a request that stands alone repeats: its version, method and name, and arguments that the tool
/// wants to see (2026-07-28 basic/transports/streamable-http, request headers).
pub(super) fn add_of_frame(head: &mut HeaderMap, text: &[u8], arguments: &[(String, String)]) {
    let Ok(Frame::One(fields)) = scan(text, &Limits::default()) else { return };
    let Some(version) = fields.inside.version.and_then(unquote) else { return };
    put(head, VERSION, &version);
    let Some(method) = fields.method.and_then(unquote) else { return };
    put(head, METHOD, &method);
    let params = fields.params.and_then(Object::new).unwrap_or(Object::EMPTY);
    let [uri, task] = params.pick(["uri", "taskId"]);
    let name = match &*method {
        "tools/call" | "prompts/get" => fields.inside.name,
        "resources/read" => uri,
        _ if method.starts_with("tasks/") => task,
        _ => None,
    };
    if let Some(name) = name.and_then(unquote) {
        put(head, NAME, &field::encode(&name));
    }
    for (key, value) in arguments {
        if let Ok(key) = HeaderName::from_bytes(key.as_bytes())
            && let Ok(value) = HeaderValue::from_str(&field::encode(value))
        {
            head.insert(key, value);
        }
    }
}

fn put(head: &mut HeaderMap, key: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        head.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_stands_alone_repeats_itself_in_its_head() {
        let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"grüße","_meta":
            {"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let mut head = common(None, None);
        add_of_frame(&mut head, text.as_bytes(), &[("mcp-param-n".into(), "ä".into())]);
        assert_eq!(head[VERSION], "2026-07-28");
        assert_eq!(head[METHOD], "tools/call");
        assert_eq!(head[NAME], "=?base64?Z3LDvMOfZQ==?=");
        assert_eq!(head["mcp-param-n"], "=?base64?w6Q=?=");
    }

    #[test]
    fn a_request_of_a_session_repeats_only_what_was_agreed() {
        let (session, version) = ("s1".parse().unwrap(), "2025-11-25".parse().unwrap());
        let mut head = common(Some(&session), Some(&version));
        add_of_frame(&mut head, br#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#, &[]);
        assert_eq!(head[SESSION], "s1");
        assert_eq!(head[VERSION], "2025-11-25");
        assert!(!head.contains_key(METHOD) && !head.contains_key(NAME));
    }
}
