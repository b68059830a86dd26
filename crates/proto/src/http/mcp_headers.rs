//! The headers of a POST against its body: the body decides, headers only confirm.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use super::header_value;
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::lifecycle;
use crate::lifecycle::HandshakePhase;
use crate::method::Method;
use crate::revision::{Era, Revision};
use crate::wire::{Fields, Frame, Object, as_string, unquote};

/// The header that names the protocol version.
pub const PROTOCOL_VERSION_HEADER: &str = "mcp-protocol-version";
/// The header that repeats the method.
pub const METHOD_HEADER: &str = "mcp-method";
/// The header that repeats what the method is about.
pub const NAME_HEADER: &str = "mcp-name";
/// The header that names the session.
pub const SESSION_ID_HEADER: &str = "mcp-session-id";
/// The header that tells where a stream was cut off.
pub const LAST_EVENT_ID_HEADER: &str = "last-event-id";

/// The longest part of a header or body value that an error repeats.
const MAX_ECHO_CHARS: usize = 64;

/// The headers that the protocol gives a meaning, as they were sent. One that was sent twice is its values
/// joined by a comma, as HTTP says, and so equals nothing.
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

/// Whose conversation a POST belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostKind {
    /// Its own: the request brings all that it needs.
    Stateless,
    /// A new session's.
    Initialize,
    /// That of the session it names.
    Session,
    /// Nobody's: the dialect knows no sessions, and each message is as good as the first.
    Sessionless,
}

/// Tells whose conversation a POST belongs to. Only after this are its headers looked at.
pub fn classify_post(
    frame: &Frame<'_>,
    head: &McpHeaders<'_>,
    dialect: &Dialect,
) -> Result<PostKind, Fault> {
    let fields = match frame {
        Frame::One(fields) => fields,
        Frame::Batch(_) if has_stateless_version(head, dialect) => {
            return Err(invalid("an array of messages is not allowed in this protocol version"));
        }
        Frame::Batch(_) => return classify_in_session(head, dialect),
    };
    let Some(method) = fields.method.and_then(unquote) else {
        // A message without a method is an answer, or it is refused for what it is.
        let answers = fields.result.is_some() || fields.error.is_some();
        return match has_stateless_version(head, dialect) && answers {
            true => Err(invalid("this protocol version has no requests of the server to answer")),
            false if has_stateless_version(head, dialect) => Ok(PostKind::Stateless),
            false => classify_in_session(head, dialect),
        };
    };
    // Who names a session has shaken hands: there, methods of the other generation are unknown.
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

/// Sessions check their version header; where there is none, the session knows.
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
    dialect.stateless && named.is_some_and(|named| named.rules().era == Era::Stateless)
}

fn revision(version: &[u8]) -> Option<Revision> {
    core::str::from_utf8(version).ok().and_then(Revision::from_name)
}

/// Checks a request that stands alone, in the order that the specification's suite expects: the body's own
/// claim, the version header, the version, the method, and only then the headers that repeat it.
/// The fault of a claim that is not whole is [`FaultKind::InvalidParams`].
pub fn check_stateless_request(
    fields: &Fields<'_>,
    head: &McpHeaders<'_>,
    dialect: &Dialect,
) -> Result<Option<Method>, Fault> {
    let Some(name) = fields.method.and_then(unquote) else { return Ok(None) };
    let is_no_object = |params: &str| params != "null" && Object::new(params).is_none();
    let is_odd = fields.repeated || fields.params.is_some_and(is_no_object);
    if fields.id.is_none() || is_odd {
        // Which headers a notification needs is not defined (the same page, sending messages). What says a
        // thing twice, or nothing that can be repeated, is refused for that.
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

/// What `Mcp-Name` repeats: the tool, the prompt, the resource or the task (SEP-2663, routing headers).
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

/// Confirms a header that may not be encoded: mostly it is what the body says, byte for byte.
fn confirm_plain(header: &str, found: Option<&[u8]>, expected: &str) -> Result<(), Fault> {
    if found == Some(expected.as_bytes()) {
        return Ok(());
    }
    let read = |value| core::str::from_utf8(value).ok().map(Cow::Borrowed);
    confirm(header, found.map(read), expected)
}

/// `found` is absent, or a value that may be unreadable.
fn confirm(header: &str, found: Option<Option<Cow<'_, str>>>, expected: &str) -> Result<(), Fault> {
    match found {
        Some(Some(value)) if value == expected => Ok(()),
        Some(Some(value)) => Err(mismatch(format!(
            "the header {header} says `{}` and the body `{}`",
            shorten(&value),
            shorten(expected)
        ))),
        Some(None) => Err(mismatch(format!("the header {header} cannot be read"))),
        None => Err(mismatch(format!(
            "the header {header} is missing; the body says `{}`",
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
