//! Decodes a server's errors into faults. The meaning of a code depends on the server's dialect, its revision and the
//! request.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Machine;
use super::calls::InFlightCall;
use super::input_requests::read_url_elicitation;
use crate::dialect::Dialect;
use crate::fault::{COMMON_ERRORS, DataShape, ErrorChannel, ErrorRow, Fault, FaultKind};
use crate::model::KeyedInputRequest;
use crate::operation::Outcome;
use crate::revision::{ElicitationSupport, Rules};
use crate::wire::{Object, Raw, unquote};

/// The error code that requests URL elicitations (2025-11-25 schema, `URLElicitationRequiredError`).
const URL_ELICITATION_REQUIRED: i64 = -32042;
/// The code for a missing resource. Up to 2025-11-25 servers send it; newer revisions only accept it
/// (2026-07-28 basic, error codes).
const RESOURCE_NOT_FOUND: i64 = -32002;

/// An error as received.
struct ServerError<'a> {
    code: i64,
    message: String,
    data: Option<&'a str>,
    method: &'a str,
    subject: &'a str,
}

impl Machine {
    /// The outcome of a call whose response is an error.
    pub(super) fn read_error(&self, pending: &InFlightCall, error: &str) -> Outcome {
        let dialect = &self.profile.dialect;
        let outcome =
            read_error_outcome(error, pending.method, &pending.subject, self.rules, dialect);
        match outcome {
            Outcome::InputRequired { requests: input_requests, .. }
                if input_requests.len() > self.profile.limits.max_input_requests =>
            {
                Fault::new(FaultKind::Internal, "the server sent too many input requests at once")
                    .into()
            }
            Outcome::InputRequired { .. } if !pending.expected.may_require_input() => Fault::new(
                FaultKind::Internal,
                "the server requested input for a method that does not allow it",
            )
            .into(),
            other => other,
        }
    }
}

/// Reads the error response to a method.
pub(super) fn read_error_outcome(
    error: &str,
    method: &str,
    subject: &str,
    rules: &'static Rules,
    dialect: &Dialect,
) -> Outcome {
    let Some(error) = Object::new(error) else {
        let detail = format!("the server failed: {}", super::receive::shorten(error));
        return Fault::new(FaultKind::Internal, detail).into();
    };
    let code = error.get("code").and_then(parse_code).unwrap_or(-32603);
    let message = error.string("message").ok().flatten().map(Cow::into_owned);
    let message = message.unwrap_or_else(|| format!("the server failed with code {code}"));
    let data = error.get("data").filter(|data| *data != "null");
    let failure = ServerError { code, message, data, method, subject };
    if let Some(input_requests) = read_url_elicitations(&failure, rules) {
        return Outcome::InputRequired { requests: input_requests, request_state: None };
    }
    Outcome::Fail(to_fault(&failure, rules, dialect))
}

/// Parses a code. Some servers write it as a string or with a fraction.
fn parse_code(raw: &str) -> Option<i64> {
    let text = unquote(raw).unwrap_or(Cow::Borrowed(raw));
    let exact = text.parse::<i64>().ok();
    exact.or_else(|| {
        text.parse::<f64>().ok().filter(|code| code % 1.0 == 0.0).map(|code| code as i64)
    })
}

/// Reads the URL elicitations that must complete before the call is retried.
fn read_url_elicitations(error: &ServerError<'_>, rules: &Rules) -> Option<Vec<KeyedInputRequest>> {
    if error.code != URL_ELICITATION_REQUIRED
        || rules.elicitation != ElicitationSupport::FormAndNamedUrl
    {
        return None;
    }
    let data = error.data.and_then(Object::new)?;
    let listed = data.array("elicitations").ok().flatten()?;
    let pages = listed.into_iter().filter_map(Object::new).filter_map(read_url_elicitation);
    let name = |(position, input_request)| KeyedInputRequest {
        key: format!("visit-{position}"),
        question: input_request,
    };
    let input_requests: Vec<_> = pages.enumerate().map(name).collect();
    (!input_requests.is_empty()).then_some(input_requests)
}

fn to_fault(error: &ServerError<'_>, rules: &'static Rules, dialect: &Dialect) -> Fault {
    // The codes of JSON-RPC have their standard meaning, unless the message is the dialect's (JSON-RPC 2.0, section
    // 5.1).
    let is_general = (-32700..=-32600).contains(&error.code);
    let row = best_row(dialect.errors.iter(), error);
    if let Some(row) = row.filter(|row| !is_general || has_message_of_row(row, error)) {
        return fault_by_dialect(row, error);
    }
    let kind = kind_by_revision(error, rules, dialect).unwrap_or(FaultKind::Foreign);
    let subject = match kind {
        FaultKind::MethodNotFound => error.method,
        _ => error.subject,
    };
    let fault =
        Fault::new(kind, error.message.clone()).with_subject(subject).with_foreign_code(error.code);
    match error.data {
        Some(data) => fault.with_data(Raw::from_validated(data)),
        None => fault,
    }
}

/// A fault that the dialect has a row for. The row determines where the detail is.
fn fault_by_dialect(row: &ErrorRow, error: &ServerError<'_>) -> Fault {
    let object = error.data.and_then(Object::new);
    let text = match &row.data {
        DataShape::None | DataShape::FromFault => None,
        DataShape::Text(_) => error.data.and_then(unquote).map(Cow::into_owned),
        DataShape::Members(members) => {
            let member = members.iter().find(|(_, template)| template == "{detail}");
            let member = member.and_then(|(name, _)| object?.string(name).ok().flatten());
            member.map(Cow::into_owned)
        }
    };
    let fault = Fault::new(row.kind, text.unwrap_or_else(|| error.message.clone()));
    match (&row.data, error.data) {
        (DataShape::FromFault, Some(data)) => fault.with_data(Raw::from_validated(data)),
        _ => fault,
    }
    .with_subject(error.subject)
}

/// The kind of fault by revision and convention; `None` for a server-specific code.
fn kind_by_revision(
    error: &ServerError<'_>,
    rules: &'static Rules,
    dialect: &Dialect,
) -> Option<FaultKind> {
    match error.code {
        RESOURCE_NOT_FOUND if error.method == "resources/read" => Some(FaultKind::ResourceNotFound),
        // These codes concern this side's message, not the operation.
        -32700 => Some(FaultKind::Internal),
        -32600 => None,
        -32601 => Some(FaultKind::MethodNotFound),
        -32602 => Some(kind_of_invalid_params(error, rules, dialect)),
        -32603 => Some(FaultKind::Internal),
        -32020 if rules.reserved_error_codes => Some(FaultKind::HeaderMismatch),
        -32021 if rules.reserved_error_codes => Some(FaultKind::MissingCapability),
        -32022 if rules.reserved_error_codes => Some(FaultKind::UnsupportedVersion),
        _ => None,
    }
}

/// One code covers all faults in params. The kind is recognised by the common messages.
fn kind_of_invalid_params(
    error: &ServerError<'_>,
    rules: &'static Rules,
    dialect: &Dialect,
) -> FaultKind {
    let usual = COMMON_ERRORS.iter().filter(|row| code_of(row) == Some(error.code));
    let worded = usual
        .filter(|row| is_possible_for_method(row.kind, error.method))
        .find(|row| has_message_of_row(row, error));
    if let Some(row) = worded.filter(|row| row.kind != FaultKind::InvalidParams) {
        return row.kind;
    }
    let names_it = || {
        let data = error.data.and_then(Object::new)?;
        data.string("uri").ok().flatten().map(|uri| uri == error.subject)
    };
    let arguments = dialect.error_row(FaultKind::InvalidArguments, rules);
    match error.method {
        "resources/read" if names_it() == Some(true) => FaultKind::ResourceNotFound,
        "tools/call" if arguments.channel == ErrorChannel::ProtocolError(-32602) => {
            FaultKind::InvalidArguments
        }
        "tasks/get" | "tasks/result" | "tasks/update" => FaultKind::UnknownTask,
        _ => FaultKind::InvalidParams,
    }
}

/// The dialect's row that an error was written from: of several with its code, the one with its message.
fn best_row<'a>(
    rows: impl Iterator<Item = &'a ErrorRow>,
    error: &ServerError<'_>,
) -> Option<&'a ErrorRow> {
    let alike: Vec<_> = rows
        .filter(|row| {
            code_of(row) == Some(error.code) && is_possible_for_method(row.kind, error.method)
        })
        .collect();
    // A row about the tool or the resource is more specific than one about any request.
    alike.into_iter().max_by_key(|row| {
        (has_message_of_row(row, error), methods_of_kind(row.kind).is_some(), Reverse(row.kind))
    })
}

fn code_of(row: &ErrorRow) -> Option<i64> {
    match row.channel {
        ErrorChannel::ProtocolError(code) => Some(code.into()),
        ErrorChannel::ToolResult { .. } => None,
    }
}

/// Whether a message begins with the row's text for this subject, up to the variable part.
fn has_message_of_row(row: &ErrorRow, error: &ServerError<'_>) -> bool {
    let fixed = row.message.split("{detail}").next().unwrap_or_default();
    let start = ErrorRow { message: fixed.to_string().into(), ..row.clone() };
    let words = start.format_message(&Fault::new(row.kind, "").with_subject(error.subject));
    !words.is_empty() && error.message.starts_with(&words)
}

/// The methods that a kind of fault is limited to, if any.
fn methods_of_kind(kind: FaultKind) -> Option<&'static [&'static str]> {
    Some(match kind {
        FaultKind::UnknownTool
        | FaultKind::InvalidArguments
        | FaultKind::ToolFailed
        | FaultKind::ToolPanicked
        | FaultKind::InputRefused
        | FaultKind::TaskRequired
        | FaultKind::TaskForbidden => &["tools/call", "tasks/result"],
        FaultKind::ResourceNotFound | FaultKind::ResourceDenied => {
            &["resources/read", "resources/subscribe", "resources/directory/read", "skills/get"]
        }
        FaultKind::UnknownPrompt => &["prompts/get"],
        FaultKind::UnknownTask | FaultKind::TaskCancelled => {
            &["tasks/get", "tasks/result", "tasks/update", "tasks/cancel"]
        }
        FaultKind::TaskOver => &["tasks/cancel"],
        _ => return None,
    })
}

fn is_possible_for_method(kind: FaultKind, method: &str) -> bool {
    methods_of_kind(kind).is_none_or(|methods| methods.contains(&method))
}
