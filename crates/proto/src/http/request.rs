//! The headers of a POST that carries a client's message: what the body says, repeated where servers look for it
//! (2026-07-28 basic/transports/streamable-http, sending messages).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::{Mirror, field, head};
use crate::method::Method;
use crate::op::Operation;
use crate::revision::{Era, Rules};
use crate::wire::{Object, Raw, unquote};

/// A header: its name in lower case, and its value.
pub type Header = (Cow<'static, str>, Cow<'static, str>);

/// The headers for a frame of a client that speaks by these rules, but for the session that the server gave. `mirrors`
/// are the arguments that the tool of a call wants to see in headers.
pub fn request_headers(frame: &[u8], rules: &Rules, mirrors: &[Mirror]) -> Vec<Header> {
    // The frame is our own, so there is nothing to check.
    let message = str::from_utf8(frame).ok().and_then(Object::new).unwrap_or(Object::EMPTY);
    let method = message.get("method").and_then(unquote).unwrap_or_default();
    if rules.era == Era::Handshake {
        return within_session(&method, rules);
    }
    let known = Method::named(&method);
    let inside = |key: &str| {
        let found = message.enter("params")?.find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    };
    let subject = known.and_then(subject).and_then(inside).and_then(unquote);
    let mirrors = if known == Some(Method::CallTool) { mirrors } else { &[] };
    let arguments = if mirrors.is_empty() { None } else { inside("arguments") };
    let repeated =
        known.map_or_else(|| Cow::Owned(method.into_owned()), |known| Cow::Borrowed(known.name()));
    standing_alone(rules, repeated, subject.as_deref(), mirrors, arguments)
}

/// The same for a call whose frame need not be looked into.
pub fn call_headers(operation: &Operation, rules: &Rules, mirrors: &[Mirror]) -> Vec<Header> {
    let method = operation.method();
    if rules.era == Era::Handshake {
        return within_session(method, rules);
    }
    let subject = Method::named(method).and_then(subject).map(|_| operation.target());
    let is_call = matches!(operation, Operation::CallTool { .. });
    let mirrors = if is_call { mirrors } else { &[] };
    let arguments = operation.arguments().map(Raw::as_str);
    standing_alone(rules, Cow::Borrowed(method), subject, mirrors, arguments)
}

/// In a session the version is all that is repeated.
fn within_session(method: &str, rules: &Rules) -> Vec<Header> {
    let has_version = rules.version_header && method != Method::Initialize.name();
    has_version.then(|| version(rules)).into_iter().collect()
}

fn version(rules: &Rules) -> Header {
    (Cow::Borrowed(head::VERSION), Cow::Borrowed(rules.name))
}

fn standing_alone(
    rules: &Rules,
    method: Cow<'static, str>,
    subject: Option<&str>,
    mirrors: &[Mirror],
    arguments: Option<&str>,
) -> Vec<Header> {
    let mut headers = Vec::with_capacity(3 + mirrors.len());
    headers.extend([version(rules), (Cow::Borrowed(head::METHOD), method)]);
    if let Some(subject) = subject {
        let value = field::encode(subject).into_owned();
        headers.push((Cow::Borrowed(head::NAME), Cow::Owned(value)));
    }
    if !mirrors.is_empty() {
        let arguments = arguments.and_then(Object::new);
        headers.extend(mirrored(mirrors, arguments.unwrap_or(Object::EMPTY)));
    }
    headers
}

/// The member of the params that a header repeats.
fn subject(method: Method) -> Option<&'static str> {
    match method {
        Method::CallTool | Method::GetPrompt => Some("name"),
        Method::ReadResource => Some("uri"),
        Method::GetTask | Method::UpdateTask | Method::CancelTask => Some("taskId"),
        _ => None,
    }
}

fn mirrored<'a>(
    mirrors: &'a [Mirror],
    arguments: Object<'a>,
) -> impl Iterator<Item = Header> + use<'a> {
    mirrors.iter().filter_map(move |mirror| {
        let value = mirror.value(arguments)?.into_owned();
        Some((Cow::Owned(mirror.header.clone()), Cow::Owned(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::builtin;
    use crate::http::{Conversation, Head, check_alone, conversation};
    use crate::revision::Revision;
    use crate::wire::{self, Frame};
    use alloc::string::ToString;
    use serde_json::json;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn headers(frame: &str, revision: Revision, mirrors: &[Mirror]) -> Vec<Header> {
        request_headers(frame.as_bytes(), revision.rules(), mirrors)
    }

    fn value<'a>(headers: &'a [Header], name: &str) -> Option<&'a str> {
        headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    #[test]
    fn from_some_revision_on_the_version_is_named() {
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        let old = headers(call, Revision::V2025_03_26, &[]);
        assert_eq!(old, []);
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
    #[test]
    fn a_call_has_the_same_headers_whether_its_frame_is_looked_into_or_not() {
        let text = alloc::string::String::from;
        let schema = json!({"properties": {"s": {"type": "string", "x-mcp-header": "S"}}});
        let mirrors = Mirror::all(&schema.to_string()).unwrap();
        let arguments = Some(Raw::of(&json!({"s": "ä"})));
        let rows = [
            (
                Operation::CallTool { name: text("say ä"), arguments: arguments.clone() },
                r#""name":"say ä","arguments":{"s":"ä"}"#,
            ),
            (Operation::CallTool { name: text("t"), arguments: None }, r#""name":"t""#),
            (
                Operation::GetPrompt { name: text(" p"), arguments },
                r#""name":" p","arguments":{"s":"ä"}"#,
            ),
            (Operation::ReadResource { uri: text("test://a b") }, r#""uri":"test://a b""#),
            (Operation::Subscribe { uri: text("test://a") }, r#""uri":"test://a""#),
            (Operation::GetTask { id: text("1") }, r#""taskId":"1""#),
            (Operation::CancelTask { id: text("1") }, r#""taskId":"1""#),
            (Operation::Discover, ""),
        ];
        for (operation, params) in rows {
            let method = operation.method();
            let frame = alloc::format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#
            );
            for revision in [Revision::V2025_03_26, Revision::V2025_11_25, Revision::V2026_07_28] {
                let found = call_headers(&operation, revision.rules(), &mirrors);
                assert_eq!(found, headers(&frame, revision, &mirrors), "{frame}");
            }
        }
    }
}
