//! The headers of a POST that carries a client's message: what the body says, repeated where servers look for it
//! (2026-07-28 basic/transports/streamable-http, sending messages).

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Mirror, field, head};
use crate::method::Method;
use crate::revision::{Era, Rules};
use crate::wire::{self, Frame, Object, unquote};

/// A header: its name in lower case, and its value.
pub type Header = (Cow<'static, str>, String);

/// The headers for a frame of a client that speaks by these rules. `session` is the id that the server gave, and
/// `mirrors` are the arguments that the tool of a call wants to see in headers.
pub fn request_headers(
    frame: &[u8],
    rules: &Rules,
    session: Option<&str>,
    mirrors: &[Mirror],
) -> Vec<Header> {
    // The frame is our own, so its size was decided elsewhere.
    let limits = wire::Limits { nodes: usize::MAX, depth: usize::MAX, ..wire::Limits::default() };
    let Ok(Frame::One(fields)) = wire::scan(frame, &limits) else { return Vec::new() };
    let method = fields.method.and_then(unquote).unwrap_or_default();
    let mut headers = Vec::new();
    let mut add = |name: &'static str, value: &str| {
        headers.push((Cow::Borrowed(name), value.to_string()));
    };
    match rules.era {
        Era::Handshake => {
            if rules.version_header && method != Method::Initialize.name() {
                add(head::VERSION, rules.name);
            }
            if let Some(session) = session {
                add(head::SESSION, session);
            }
        }
        Era::Stateless => {
            add(head::VERSION, rules.name);
            add(head::METHOD, &method);
            let method = Method::named(&method);
            let subject = method.and_then(|method| head::subject(method, &fields).ok().flatten());
            if let Some(subject) = subject {
                add(head::NAME, &field::encode(&subject));
            }
            if method == Some(Method::CallTool) {
                let arguments = fields.inside.arguments.and_then(Object::new);
                headers.extend(mirrored(mirrors, arguments.unwrap_or(Object::EMPTY)));
            }
        }
    }
    headers
}

fn mirrored<'a>(
    mirrors: &'a [Mirror],
    arguments: Object<'a>,
) -> impl Iterator<Item = Header> + use<'a> {
    mirrors.iter().filter_map(move |mirror| {
        let value = mirror.value(arguments)?.into_owned();
        Some((Cow::Owned(mirror.header.clone()), value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::builtin;
    use crate::http::{Conversation, Head, check_alone, conversation};
    use crate::revision::Revision;
    use serde_json::json;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn headers(frame: &str, revision: Revision, mirrors: &[Mirror]) -> Vec<Header> {
        request_headers(frame.as_bytes(), revision.rules(), Some("s1"), mirrors)
    }

    fn value<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_session_is_named_and_from_some_revision_on_the_version() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let old = headers(call, Revision::V2025_03_26, &[]);
        assert_eq!(old, [("mcp-session-id".into(), "s1".into())]);
        let new = headers(call, Revision::V2025_06_18, &[]);
        assert_eq!(value(&new, "mcp-protocol-version"), Some("2025-06-18"));
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        assert_eq!(
            value(&headers(hello, Revision::V2025_06_18, &[]), "mcp-protocol-version"),
            None
        );
    }

    #[test]
    fn our_server_finds_what_our_client_says() {
        let dialect = builtin("spec").unwrap();
        let rows = [
            ("tools/call", r#""name":"say ä","arguments":{}"#),
            ("resources/read", r#""uri":"test://a b""#),
            ("prompts/get", r#""name":" p""#),
            ("tasks/get", r#""taskId":"t\n1""#),
            ("tools/list", r#""cursor":"c""#),
        ];
        for (method, params) in rows {
            let frame = alloc::format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params},{META}}}}}"#
            );
            let headers = headers(&frame, Revision::V2026_07_28, &[]);
            let get = |name| value(&headers, name).map(str::as_bytes);
            let head = Head {
                version: get(head::VERSION),
                method: get(head::METHOD),
                name: get(head::NAME),
                has_session: get(head::SESSION).is_some(),
            };
            let scanned = wire::scan(frame.as_bytes(), &wire::Limits::default()).unwrap();
            assert_eq!(conversation(&scanned, &head, &dialect).unwrap(), Conversation::Alone);
            let Frame::One(fields) = scanned else { panic!() };
            assert!(check_alone(&fields, &head, &dialect).unwrap().is_some(), "{frame}");
        }
    }

    #[test]
    fn arguments_are_repeated_as_the_tool_wants_it() {
        let schema = json!({"properties": {
            "s": {"type": "string", "x-mcp-header": "S"},
            "i": {"type": "integer", "x-mcp-header": "I"},
            "b": {"type": "boolean", "x-mcp-header": "B"},
            "n": {"type": "string", "x-mcp-header": "N"},
        }});
        let mirrors = Mirror::all(&schema.to_string()).unwrap();
        let arguments = r#"{"s":"ä","i":42.0,"b":false,"n":null}"#;
        let frame = alloc::format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments},{META}}}}}"#
        );
        let headers = headers(&frame, Revision::V2026_07_28, &mirrors);
        assert_eq!(value(&headers, "mcp-param-i"), Some("42"));
        assert_eq!(value(&headers, "mcp-param-b"), Some("false"));
        assert_eq!(value(&headers, "mcp-param-n"), None);
        let arguments = Object::new(arguments).unwrap();
        for mirror in &mirrors {
            let header = value(&headers, &mirror.header).map(str::as_bytes);
            assert!(mirror.check(arguments, header).is_ok(), "{}", mirror.header);
        }
    }
}
