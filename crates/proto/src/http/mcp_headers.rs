//! Checks the headers of a POST against its body. The body is authoritative; headers must match it
//! (2026-07-28 basic/transports/streamable-http, server validation).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use super::header_value;
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::lifecycle;
use crate::lifecycle::HandshakePhase;
use crate::method::Method;
use crate::revision::Revision;
use crate::wire::{Fields, Frame, Object, as_string, unquote};

/// The header that names the protocol version.
pub const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";
/// The header that repeats the method.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header that repeats the subject of the method.
pub const NAME_HEADER: &str = "mcp-name";
/// The header that names the session.
pub const SESSION_ID_HEADER: &str = "mcp-session-id";
/// The header with the position at which a stream broke off (2025-11-25 basic/transports, resumability and redelivery).
pub const LAST_EVENT_ID_HEADER: &str = "last-event-id";

/// Maximum length of a header or body value that an error repeats.
const MAX_ECHO_CHARS: usize = 64;

/// The protocol's headers as received. A repeated header has its values joined by a comma (RFC 9110, 5.3), and so
/// matches nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpHeaders<'a> {
    /// See [`PROTOCOL_VERSION_HEADER`].
    pub protocol_version: Option<&'a [u8]>,
    /// See [`METHOD_HEADER`].
    pub method: Option<&'a [u8]>,
    /// See [`NAME_HEADER`].
    pub name: Option<&'a [u8]>,
    /// Whether [`SESSION_ID_HEADER`] was sent.
    pub has_session: bool,
}

/// The session that a POST belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostKind {
    /// None: the request is stateless (2026-07-28 basic, statelessness).
    Stateless,
    /// A new session.
    Initialize,
    /// The session that its header names.
    Session,
    /// None: the dialect has no sessions, and messages are independent.
    Sessionless,
}

/// Determines the session that a POST belongs to. Its headers are checked only after this.
pub fn classify_post(
    frame: &Frame<'_>,
    head: &McpHeaders<'_>,
    dialect: &Dialect,
) -> Result<PostKind, Fault> {
    let fields = match frame {
        Frame::One(fields) => fields,
        Frame::Batch(_) if has_stateless_version(head, dialect) => {
            return Err(invalid("a batch is not allowed in this protocol version"));
        }
        Frame::Batch(_) => return classify_in_session(head, dialect),
    };
    let Some(method) = fields.method.and_then(unquote) else {
        // A message without a method is a response, or is rejected for another reason.
        let answers = fields.result.is_some() || fields.error.is_some();
        return match has_stateless_version(head, dialect) && answers {
            true => Err(invalid(
                "this protocol version has no requests from the server, so a \
                response is not allowed",
            )),
            false if has_stateless_version(head, dialect) => Ok(PostKind::Stateless),
            false => classify_in_session(head, dialect),
        };
    };
    // A client that names a session has completed a handshake. Methods of the stateless era are unknown there.
    let phase = if head.has_session { HandshakePhase::Operating } else { HandshakePhase::Created };
    let claims = lifecycle::is_stateless_request(&method, &fields.param_members, phase, dialect);
    if claims || has_stateless_version(head, dialect) {
        return Ok(PostKind::Stateless);
    }
    match dialect.method(&method, dialect.base_rules()) {
        Some(Method::Initialize) if !dialect.is_sessionless() => Ok(PostKind::Initialize),
        _ => classify_in_session(head, dialect),
    }
}

/// Checks the version header of a session. Without the header, the negotiated version applies
/// (2025-06-18 basic/transports, protocol version header).
fn classify_in_session(head: &McpHeaders<'_>, dialect: &Dialect) -> Result<PostKind, Fault> {
    if let Some(version) = head.protocol_version
        && revision(version).is_none()
    {
        let version = String::from_utf8_lossy(version);
        return Err(lifecycle::unsupported_version_fault(&version, dialect));
    }
    Ok(match dialect.is_sessionless() {
        true => PostKind::Sessionless,
        false => PostKind::Session,
    })
}

fn has_stateless_version(head: &McpHeaders<'_>, dialect: &Dialect) -> bool {
    let named = head.protocol_version.and_then(revision);
    dialect.stateless && named.is_some_and(|named| named.rules().request_meta)
}

fn revision(version: &[u8]) -> Option<Revision> {
    core::str::from_utf8(version).ok().and_then(Revision::from_name)
}

/// Checks a stateless request in the order that the specification's test suite expects: the `_meta` members, the
/// version header, the version, the method, and then the headers that repeat the method and its subject. Incomplete
/// `_meta` members are [`FaultKind::InvalidParams`].
pub fn check_stateless_request(
    fields: &Fields<'_>,
    head: &McpHeaders<'_>,
    dialect: &Dialect,
) -> Result<Option<Method>, Fault> {
    let Some(name) = fields.method.and_then(unquote) else { return Ok(None) };
    let is_no_object = |params: &str| params != "null" && Object::new(params).is_none();
    let is_odd = fields.repeated || fields.params.is_some_and(is_no_object);
    if fields.id.is_none() || is_odd {
        // The specification does not define the headers of a notification
        // (2026-07-28 basic/transports/streamable-http, sending messages). Messages with repeated keys or invalid
        // params are rejected later.
        return Ok(None);
    }
    let params = fields.params.and_then(Object::new).unwrap_or(Object::EMPTY);
    if let Some(fault) = lifecycle::handshake_fault(&name, &fields.param_members, params, dialect) {
        return Err(fault);
    }
    let claimed = lifecycle::claimed_version(&fields.param_members)?;
    confirm_plain("MCP-Protocol-Version", head.protocol_version, &claimed)?;
    let rules = lifecycle::supported_rules(&claimed, dialect)?;
    let Some(method) = dialect.method(&name, rules) else { return Ok(None) };
    confirm_plain("Mcp-Method", head.method, &name)?;
    if let Some(subject) = subject(method, fields)? {
        confirm("Mcp-Name", head.name.map(header_value::decode), &subject)?;
    }
    Ok(Some(method))
}

/// The value that `Mcp-Name` repeats: the tool, the prompt, the resource
/// (2026-07-28 basic/transports/streamable-http, standard request headers) or the task
/// (SEP-2663, streamable HTTP: routing headers).
pub(super) fn subject<'a>(
    method: Method,
    fields: &Fields<'a>,
) -> Result<Option<Cow<'a, str>>, Fault> {
    let inside = |key: &'static str| {
        let params = fields.params.and_then(Object::new).unwrap_or(Object::EMPTY);
        params.string(key)
    };
    Ok(match method {
        Method::CallTool | Method::GetPrompt => as_string("name", fields.param_members.name)?,
        Method::ReadResource => inside("uri")?,
        Method::GetTask | Method::UpdateTask | Method::CancelTask => inside("taskId")?,
        _ => None,
    })
}

/// Compares a header that may not be encoded. In most cases it equals the body's value byte for byte.
fn confirm_plain(header: &str, found: Option<&[u8]>, expected: &str) -> Result<(), Fault> {
    if found == Some(expected.as_bytes()) {
        return Ok(());
    }
    let read = |value| core::str::from_utf8(value).ok().map(Cow::Borrowed);
    confirm(header, found.map(read), expected)
}

/// Compares a header, which may be absent or unreadable, with the body's value
/// (2026-07-28 schema, `HeaderMismatchError`).
fn confirm(header: &str, found: Option<Option<Cow<'_, str>>>, expected: &str) -> Result<(), Fault> {
    match found {
        Some(Some(value)) if value == expected => Ok(()),
        Some(Some(value)) => Err(mismatch(format!(
            "the header {header} is `{}`, but the body has `{}`",
            shorten(&value),
            shorten(expected)
        ))),
        Some(None) => Err(mismatch(format!("the header {header} is malformed"))),
        None => Err(mismatch(format!(
            "the header {header} is missing; the body has `{}`",
            shorten(expected)
        ))),
    }
}

pub(super) fn mismatch(detail: String) -> Fault {
    Fault::new(FaultKind::HeaderMismatch, detail)
}

pub(super) fn shorten(text: &str) -> String {
    text.chars().take(MAX_ECHO_CHARS).collect()
}

fn invalid(detail: &str) -> Fault {
    Fault::new(FaultKind::InvalidRequest, detail)
}

#[cfg(test)]
mod tests;
