//! The headers of a POST against its body: the body decides, headers only confirm.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use super::field;
use crate::dialect::Dialect;
use crate::fault::{Fault, FaultKind};
use crate::lifecycle::{self, Phase};
use crate::method::Method;
use crate::revision::{Era, Revision};
use crate::wire::{Fields, Frame, Object, as_string, unquote};

/// The header that names the protocol version.
pub const VERSION: &str = "mcp-protocol-version";
/// The header that repeats the method.
pub const METHOD: &str = "mcp-method";
/// The header that repeats what the method is about.
pub const NAME: &str = "mcp-name";
/// The header that names the session.
pub const SESSION: &str = "mcp-session-id";
/// The header that tells where a stream was cut off.
pub const LAST_EVENT: &str = "last-event-id";

/// The longest part of a header or body value that an error repeats.
const LONGEST_ECHO: usize = 64;

/// The headers that the protocol gives a meaning, as they were sent. One that was sent twice is its values
/// joined by a comma, as HTTP says, and so equals nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// See [`VERSION`].
    pub version: Option<&'a [u8]>,
    /// See [`METHOD`].
    pub method: Option<&'a [u8]>,
    /// See [`NAME`].
    pub name: Option<&'a [u8]>,
    /// Whether [`SESSION`] was sent.
    pub has_session: bool,
}

/// Whose conversation a POST belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversation {
    /// Its own: the request brings all that it needs.
    Alone,
    /// A new session's.
    Opening,
    /// That of the session it names.
    Session,
    /// Nobody's: the dialect knows no sessions, and each message is as good as the first.
    Sessionless,
}

/// Tells whose conversation a POST belongs to. Only after this are its headers looked at.
pub fn conversation(
    frame: &Frame<'_>,
    head: &Head<'_>,
    dialect: &Dialect,
) -> Result<Conversation, Fault> {
    let fields = match frame {
        Frame::One(fields) => fields,
        Frame::Batch(_) if names_stateless(head, dialect) => {
            return Err(invalid("an array of messages is not allowed in this protocol version"));
        }
        Frame::Batch(_) => return in_session(head, dialect),
    };
    let Some(method) = fields.method.and_then(unquote) else {
        // A message without a method is an answer, or it is refused for what it is.
        let answers = fields.result.is_some() || fields.error.is_some();
        return match names_stateless(head, dialect) && answers {
            true => Err(invalid("this protocol version has no requests of the server to answer")),
            false if names_stateless(head, dialect) => Ok(Conversation::Alone),
            false => in_session(head, dialect),
        };
    };
    // Who names a session has shaken hands: there, methods of the other generation are unknown.
    let phase = if head.has_session { Phase::Operating } else { Phase::Created };
    let claims = lifecycle::stands_alone(&method, &fields.inside, phase, dialect);
    if claims || names_stateless(head, dialect) {
        return Ok(Conversation::Alone);
    }
    match dialect.method(&method, dialect.base_rules()) {
        Some(Method::Initialize) if !dialect.is_sessionless() => Ok(Conversation::Opening),
        _ => in_session(head, dialect),
    }
}

/// Sessions check their version header; where there is none, the session knows.
fn in_session(head: &Head<'_>, dialect: &Dialect) -> Result<Conversation, Fault> {
    if let Some(version) = head.version
        && revision(version).is_none()
    {
        let version = String::from_utf8_lossy(version);
        return Err(lifecycle::unsupported(&version, dialect));
    }
    Ok(match dialect.is_sessionless() {
        true => Conversation::Sessionless,
        false => Conversation::Session,
    })
}

fn names_stateless(head: &Head<'_>, dialect: &Dialect) -> bool {
    let named = head.version.and_then(revision);
    dialect.stateless && named.is_some_and(|named| named.rules().era == Era::Stateless)
}

fn revision(version: &[u8]) -> Option<Revision> {
    core::str::from_utf8(version).ok().and_then(Revision::named)
}

/// Checks a request that stands alone, in the order that the specification's suite expects: the body's own
/// claim, the version header, the version, the method, and only then the headers that repeat it.
/// The fault of a claim that is not whole is [`FaultKind::InvalidParams`].
pub fn check_alone(
    fields: &Fields<'_>,
    head: &Head<'_>,
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
    if let Some(fault) = lifecycle::refused_handshake(&name, &fields.inside, params, dialect) {
        return Err(fault);
    }
    let claimed = lifecycle::claim(&fields.inside)?;
    confirm_plain("MCP-Protocol-Version", head.version, &claimed)?;
    let rules = lifecycle::supported(&claimed, dialect)?;
    let Some(method) = dialect.method(&name, rules) else { return Ok(None) };
    confirm_plain("Mcp-Method", head.method, &name)?;
    if let Some(subject) = subject(method, fields)? {
        confirm("Mcp-Name", head.name.map(field::decode), &subject)?;
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
        Method::CallTool | Method::GetPrompt => as_string("name", fields.inside.name)?,
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
    text.chars().take(LONGEST_ECHO).collect()
}

fn invalid(detail: &str) -> Fault {
    Fault::new(FaultKind::InvalidRequest, detail)
}

#[cfg(test)]
mod tests;
