//! The headers of a client's POST, which repeat parts of the body for servers
//! (2026-07-28 basic/transports/streamable-http, request metadata).

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::{MirroredHeader, header_value, mcp_headers};
use crate::method::Method;
use crate::operation::Operation;
use crate::revision::Rules;
use crate::wire::{Object, Raw, unquote};

/// A header: its name in lower case, and its value.
pub type HeaderField = (Cow<'static, str>, Cow<'static, str>);

/// The headers for a client's frame under these rules, except for the session id. `mirrors` are the mirrored headers of
/// the called tool.
pub fn request_headers(
    frame: &[u8],
    rules: &Rules,
    mirrors: &[MirroredHeader],
) -> Vec<HeaderField> {
    // The frame was written by this program, so it needs no check.
    let message = str::from_utf8(frame).ok().and_then(Object::new).unwrap_or(Object::EMPTY);
    let method = message.get("method").and_then(unquote).unwrap_or_default();
    if !rules.mirrored_headers {
        return session_headers(&method, rules);
    }
    let known = Method::from_name(&method);
    let inside = |key: &str| {
        let found = message.enter_member("params")?.find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    };
    let subject = known.and_then(subject).and_then(inside).and_then(unquote);
    let mirrors = if known == Some(Method::CallTool) { mirrors } else { &[] };
    let arguments = if mirrors.is_empty() { None } else { inside("arguments") };
    let repeated =
        known.map_or_else(|| Cow::Owned(method.into_owned()), |known| Cow::Borrowed(known.name()));
    stateless_headers(rules, repeated, subject.as_deref(), mirrors, arguments)
}

/// The same for a call, without reading its frame.
pub fn call_headers(
    operation: &Operation,
    rules: &Rules,
    mirrors: &[MirroredHeader],
) -> Vec<HeaderField> {
    let method = operation.method();
    if !rules.mirrored_headers {
        return session_headers(method, rules);
    }
    let subject = Method::from_name(method).and_then(subject).map(|_| operation.target());
    let is_call = matches!(operation, Operation::CallTool { .. });
    let mirrors = if is_call { mirrors } else { &[] };
    let arguments = operation.arguments().map(Raw::as_str);
    stateless_headers(rules, Cow::Borrowed(method), subject, mirrors, arguments)
}

/// In a session, only the version is repeated (2025-06-18 basic/transports, protocol version header).
fn session_headers(method: &str, rules: &Rules) -> Vec<HeaderField> {
    let has_version = rules.version_header && method != Method::Initialize.name();
    has_version.then(|| protocol_version_header(rules)).into_iter().collect()
}

fn protocol_version_header(rules: &Rules) -> HeaderField {
    (Cow::Borrowed(mcp_headers::PROTOCOL_VERSION_HEADER), Cow::Borrowed(rules.name))
}

fn stateless_headers(
    rules: &Rules,
    method: Cow<'static, str>,
    subject: Option<&str>,
    mirrors: &[MirroredHeader],
    arguments: Option<&str>,
) -> Vec<HeaderField> {
    let mut headers = Vec::with_capacity(3 + mirrors.len());
    headers.extend([
        protocol_version_header(rules),
        (Cow::Borrowed(mcp_headers::METHOD_HEADER), method),
    ]);
    if let Some(subject) = subject {
        let value = header_value::encode(subject).into_owned();
        headers.push((Cow::Borrowed(mcp_headers::NAME_HEADER), Cow::Owned(value)));
    }
    if !mirrors.is_empty() {
        let arguments = arguments.and_then(Object::new);
        headers.extend(mirrored_header_fields(mirrors, arguments.unwrap_or(Object::EMPTY)));
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

fn mirrored_header_fields<'a>(
    mirrors: &'a [MirroredHeader],
    arguments: Object<'a>,
) -> impl Iterator<Item = HeaderField> + use<'a> {
    mirrors.iter().filter_map(move |mirror| {
        let value = mirror.value(arguments)?.into_owned();
        Some((Cow::Owned(mirror.header.clone()), Cow::Owned(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::builtin;
    use crate::http::{McpHeaders, PostKind, check_stateless_request, classify_post};
    use crate::revision::Revision;
    use crate::wire;
    use crate::wire::Frame;
    use alloc::string::ToString;
    use serde_json::json;

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    fn headers(frame: &str, revision: Revision, mirrors: &[MirroredHeader]) -> Vec<HeaderField> {
        request_headers(frame.as_bytes(), revision.rules(), mirrors)
    }

    fn value<'a>(headers: &'a [HeaderField], name: &str) -> Option<&'a str> {
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
    fn our_server_reads_the_headers_of_our_client() {
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
            let head = McpHeaders {
                protocol_version: get(mcp_headers::PROTOCOL_VERSION_HEADER),
                method: get(mcp_headers::METHOD_HEADER),
                name: get(mcp_headers::NAME_HEADER),
                has_session: get(mcp_headers::SESSION_ID_HEADER).is_some(),
            };
            let scanned = wire::scan(frame.as_bytes(), &wire::ScanLimits::default()).unwrap();
            assert_eq!(classify_post(&scanned, &head, &dialect).unwrap(), PostKind::Stateless);
            let Frame::One(fields) = scanned else { panic!() };
            assert!(
                check_stateless_request(&fields, &head, &dialect).unwrap().is_some(),
                "{frame}"
            );
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
        let mirrors = MirroredHeader::find_all(&schema.to_string()).unwrap();
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
    fn a_call_has_the_same_headers_with_and_without_parsing_its_frame() {
        let text = alloc::string::String::from;
        let schema = json!({"properties": {"s": {"type": "string", "x-mcp-header": "S"}}});
        let mirrors = MirroredHeader::find_all(&schema.to_string()).unwrap();
        let arguments = Some(Raw::from_value(&json!({"s": "ä"})));
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
