//! Classifies JSON-RPC messages according to a dialect.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use crate::dialect::{Dialect, MissingIdPolicy, NullIdPolicy, RejectedIdPolicy};
use crate::fault::{Fault, FaultKind};
use crate::wire::{Fields, Id, Object, unquote};

/// A message of a client.
#[derive(Debug)]
pub enum ClientMessage<'a> {
    /// A request, which needs a response (2025-11-25 schema, `JSONRPCRequest`).
    Request {
        /// The id of the request.
        id: Id,
        /// The method name.
        method: Cow<'a, str>,
        /// The params.
        params: Option<Object<'a>>,
    },
    /// A notification, which needs no response (2025-11-25 schema, `JSONRPCNotification`).
    Notification {
        /// The method name.
        method: Cow<'a, str>,
        /// The params.
        params: Option<Object<'a>>,
    },
    /// A response to a request of the server (2025-11-25 schema, `JSONRPCResponse`).
    Response {
        /// The id of the request.
        id: Id,
        /// The raw result, or the raw error.
        result: Result<&'a str, &'a str>,
    },
}

/// A message that is rejected as a whole.
#[derive(Debug)]
pub struct RejectedMessage {
    /// The reason.
    pub fault: Box<Fault>,
    /// The id for the response, if it is readable.
    pub id: Option<Id>,
}

/// Classifies a scanned message.
pub fn classify<'a>(
    fields: &Fields<'a>,
    dialect: &Dialect,
) -> Result<ClientMessage<'a>, RejectedMessage> {
    check_envelope(fields).and_then(|()| read_message(fields, dialect)).map_err(|fault| {
        RejectedMessage {
            id: match dialect.refused_id {
                // A message without a method still counts as a request.
                RejectedIdPolicy::Null if fault.kind != FaultKind::MissingMethod => None,
                _ => fields.id.and_then(|raw| dialect.parse_id(raw).ok()),
            },
            fault: Box::new(fault),
        }
    })
}

fn check_envelope(fields: &Fields<'_>) -> Result<(), Fault> {
    if !fields.is_object {
        return Err(invalid("a message must be a JSON object"));
    }
    if fields.repeated {
        return Err(invalid("an object has a duplicate key"));
    }
    let is_marked = |marker| marker == "\"2.0\"" || unquote(marker).as_deref() == Some("2.0");
    if !fields.jsonrpc.is_some_and(is_marked) {
        return Err(invalid("`jsonrpc` must be \"2.0\""));
    }
    let is_answer = fields.result.is_some() || fields.error.is_some();
    if fields.method.is_some() && is_answer {
        return Err(invalid("a message has either `method` or `result` or `error`"));
    }
    Ok(())
}

fn read_message<'a>(fields: &Fields<'a>, dialect: &Dialect) -> Result<ClientMessage<'a>, Fault> {
    let Some(method) = fields.method else { return read_response(fields) };
    let method = match unquote(method) {
        Some(method) if !method.is_empty() => method,
        _ => return Err(invalid("`method` must be a non-empty string")),
    };
    let params = read_params(fields)?;
    let notification = match fields.id {
        None => dialect.missing_id == MissingIdPolicy::Notification,
        Some(id) => id == "null" && dialect.null_id == NullIdPolicy::Notification,
    };
    if notification {
        return Ok(ClientMessage::Notification { method, params });
    }
    let id = fields.id.ok_or_else(|| invalid("`id` is missing"))?;
    let id = dialect
        .parse_id(id)
        .map_err(|_| invalid("`id` must be a string or an integer, and short"))?;
    Ok(ClientMessage::Request { id, method, params })
}

fn read_params<'a>(fields: &Fields<'a>) -> Result<Option<Object<'a>>, Fault> {
    match fields.params {
        // Some clients send null for absent params. No revision gives null another meaning.
        None | Some("null") => Ok(None),
        Some(text) => match Object::new(text) {
            Some(object) => Ok(Some(object)),
            None => Err(invalid("`params` must be an object")),
        },
    }
}

fn read_response<'a>(fields: &Fields<'a>) -> Result<ClientMessage<'a>, Fault> {
    let answer = match (fields.result, fields.error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(error),
        (Some(_), Some(_)) => return Err(invalid("a response has either `result` or `error`")),
        (None, None) => return Err(Fault::new(FaultKind::MissingMethod, "`method` is missing")),
    };
    let id = fields.id.and_then(|raw| Id::parse(raw).ok());
    let id = id.ok_or_else(|| invalid("a response needs the `id` of its request"))?;
    Ok(ClientMessage::Response { id, result: answer })
}

fn invalid(detail: &str) -> Fault {
    Fault::new(FaultKind::InvalidRequest, detail)
}
