//! Faults: the kinds of failure, and the tables that turn each kind into a code, a message and data.
//!
//! A handler or a rule names the kind. The revision and the dialect determine its encoding. A bare code is ambiguous:
//! -32002 is "resource not found", "invalid tool params" or "platform not available", depending on the server.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::{error, fmt};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::{Raw, quote};

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The bytes are not JSON (2026-07-28 schema, `ParseError`).
    Parse,
    /// The JSON is not a JSON-RPC message, or exceeds a limit (2026-07-28 schema, `InvalidRequestError`).
    InvalidRequest,
    /// A request without a method.
    MissingMethod,
    /// A method that does not exist here (2026-07-28 schema, `MethodNotFoundError`).
    MethodNotFound,
    /// Parameters of the wrong shape (2026-07-28 schema, `InvalidParamsError`).
    InvalidParams,
    /// An internal failure (2026-07-28 schema, `InternalError`).
    Internal,
    /// An operation before the handshake.
    NotInitialized,
    /// A second handshake where only one is allowed.
    AlreadyInitialized,
    /// A tool that does not exist.
    UnknownTool,
    /// Arguments that do not match the tool's schema.
    InvalidArguments,
    /// The tool ran and failed.
    ToolFailed,
    /// The tool panicked.
    ToolPanicked,
    /// A resource that does not exist.
    ResourceNotFound,
    /// A resource that this caller may not read.
    ResourceDenied,
    /// A prompt that does not exist.
    UnknownPrompt,
    /// The system that the server depends on is unavailable.
    BackendUnavailable,
    /// An HTTP request header that is missing, unreadable or differs from the body
    /// (2026-07-28 schema, `HeaderMismatchError`).
    HeaderMismatch,
    /// A protocol version that is not served (2026-07-28 schema, `UnsupportedProtocolVersionError`).
    UnsupportedVersion,
    /// The client lacks a capability that the operation needs
    /// (2026-07-28 schema, `MissingRequiredClientCapabilityError`).
    MissingCapability,
    /// A request state that was modified, has expired or belongs to another request
    /// (2026-07-28 basic/patterns/mrtr, server requirements).
    StateRefused,
    /// The client declined an input request.
    InputRefused,
    /// The call exceeded its deadline.
    Timeout,
    /// Too many calls are in flight.
    Busy,
    /// A task that does not exist, no longer exists (SEP-2663, protocol errors) or belongs to another principal. The
    /// response does not reveal which.
    UnknownTask,
    /// A finished task, which cannot be cancelled.
    TaskOver,
    /// The outcome of a cancelled task.
    TaskCancelled,
    /// A tool that runs only as a task.
    TaskRequired,
    /// A tool that does not run as a task.
    TaskForbidden,
    /// An error that an upstream returned under its own code.
    Foreign,
    /// The caller's token lacks scopes that the operation requires. `data` names them:
    /// `{"required_scopes": ["files:write"]}`.
    InsufficientScope,
}

impl FaultKind {
    /// Every kind with the name used in configuration and documents.
    pub const ALL: [(Self, &'static str); 30] = [
        (Self::Parse, "parse"),
        (Self::InvalidRequest, "invalid-request"),
        (Self::MissingMethod, "missing-method"),
        (Self::MethodNotFound, "method-not-found"),
        (Self::InvalidParams, "invalid-params"),
        (Self::Internal, "internal"),
        (Self::NotInitialized, "not-initialized"),
        (Self::AlreadyInitialized, "already-initialized"),
        (Self::UnknownTool, "unknown-tool"),
        (Self::InvalidArguments, "invalid-arguments"),
        (Self::ToolFailed, "tool-failed"),
        (Self::ToolPanicked, "tool-panicked"),
        (Self::ResourceNotFound, "resource-not-found"),
        (Self::ResourceDenied, "resource-denied"),
        (Self::UnknownPrompt, "unknown-prompt"),
        (Self::BackendUnavailable, "backend-unavailable"),
        (Self::HeaderMismatch, "header-mismatch"),
        (Self::UnsupportedVersion, "unsupported-version"),
        (Self::MissingCapability, "missing-capability"),
        (Self::StateRefused, "state-refused"),
        (Self::InputRefused, "input-refused"),
        (Self::Timeout, "timeout"),
        (Self::Busy, "busy"),
        (Self::UnknownTask, "unknown-task"),
        (Self::TaskOver, "task-over"),
        (Self::TaskCancelled, "task-cancelled"),
        (Self::TaskRequired, "task-required"),
        (Self::TaskForbidden, "task-forbidden"),
        (Self::Foreign, "foreign"),
        (Self::InsufficientScope, "insufficient-scope"),
    ];

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// The name used in configuration and documents.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl Serialize for FaultKind {
    /// Serialises the name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FaultKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| D::Error::custom("unknown fault kind"))
    }
}

/// One fault: its kind and its details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fault {
    /// The kind of failure.
    pub kind: FaultKind,
    /// The tool, method, URI or prompt concerned.
    pub subject: String,
    /// A sentence for people.
    pub detail: String,
    /// Structured details. The table decides whether they are sent.
    pub data: Option<Raw>,
    /// The location of the failure, or the last output of a program that ended. Sent to callers only in debug mode.
    pub trace: Option<String>,
    /// The error code of the upstream, if an upstream reported the fault. `detail` and `data` are then the upstream's.
    #[serde(default)]
    pub foreign_code: Option<i64>,
}

impl Fault {
    /// A fault with a sentence.
    pub fn new(kind: FaultKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            subject: String::new(),
            detail: detail.into(),
            data: None,
            trace: None,
            foreign_code: None,
        }
    }

    /// Sets the subject. A long subject, which only a client can have invented, is truncated.
    #[must_use]
    pub fn with_subject(mut self, subject: &str) -> Self {
        self.subject = subject.chars().take(MAX_SUBJECT_CHARS).collect();
        self
    }

    /// Sets the structured details.
    #[must_use]
    pub fn with_data(mut self, data: Raw) -> Self {
        self.data = Some(data);
        self
    }

    /// Whether the server may have processed the request. It has not if the data say `"sent": false`.
    #[must_use]
    pub fn may_be_processed(&self) -> bool {
        let data = self.data.as_ref().and_then(Raw::as_object);
        data.and_then(|data| data.bool("sent").ok()?).unwrap_or(true)
    }

    /// Converts a fault between the gateway and an upstream for the caller. A protocol fault of the gateway's own
    /// request becomes [`FaultKind::BackendUnavailable`], since the caller would attribute it to its own request.
    #[must_use]
    pub fn for_caller(mut self) -> Self {
        let is_ours = matches!(
            self.kind,
            FaultKind::Parse
                | FaultKind::InvalidRequest
                | FaultKind::MissingMethod
                | FaultKind::NotInitialized
                | FaultKind::AlreadyInitialized
                | FaultKind::HeaderMismatch
                | FaultKind::UnsupportedVersion
        );
        if is_ours {
            (self.kind, self.foreign_code) = (FaultKind::BackendUnavailable, None);
            self.data = None;
        }
        self
    }

    /// Sets the code under which an upstream reported this fault.
    #[must_use]
    pub fn with_foreign_code(mut self, code: i64) -> Self {
        self.foreign_code = Some(code);
        self
    }
}

/// The sentence for people, or, without one, the message that the specification's table has for this kind.
impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.as_str() {
            "" => formatter.write_str(&COMMON_ERRORS[self.kind as usize].format_message(self)),
            detail => formatter.write_str(detail),
        }
    }
}

impl error::Error for Fault {}

/// Maximum length of a name or URI that an error repeats, in characters.
const MAX_SUBJECT_CHARS: usize = 256;

/// The place in a response where a fault is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorChannel {
    /// A JSON-RPC error with this code.
    ProtocolError(i32),
    /// A tool result with `isError`, so that the model can react (2025-11-25 schema, `CallToolResult`). Outside of tool
    /// calls it is an error with `fallback_code`.
    ToolResult {
        /// The code outside of tool calls.
        fallback_code: i32,
    },
}

/// The content of the error's `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataShape {
    /// Nothing.
    None,
    /// The fault's own data.
    FromFault,
    /// A string.
    Text(Cow<'static, str>),
    /// An object with these members. A member whose text is `{trace}` is omitted when there is no trace.
    Members(Cow<'static, [(Cow<'static, str>, Cow<'static, str>)]>),
}

/// The encoding of one kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The kind.
    pub kind: FaultKind,
    /// The place in a response where it is reported.
    pub channel: ErrorChannel,
    /// The message template. `{tool}`, `{method}`, `{uri}` and `{prompt}` expand to the subject, `{detail}` and
    /// `{trace}` to the fields of that name.
    pub message: Cow<'static, str>,
    /// The content of `data`.
    pub data: DataShape,
}

impl ErrorRow {
    /// A row of constants.
    pub const fn fixed(
        kind: FaultKind,
        channel: ErrorChannel,
        message: &'static str,
        data: DataShape,
    ) -> Self {
        Self { kind, channel, message: Cow::Borrowed(message), data }
    }

    /// The message for this fault.
    pub fn format_message(&self, fault: &Fault) -> String {
        // The upstream's message is already the result of such a template.
        match fault.foreign_code.is_some() && self.message.contains("{detail}") {
            true => fault.detail.clone(),
            false => fill_template(&self.message, fault),
        }
    }

    /// The data for this fault, as JSON text.
    pub fn format_data(&self, fault: &Fault) -> Option<String> {
        match &self.data {
            DataShape::None => None,
            DataShape::FromFault => fault.data.as_ref().map(|data| data.as_str().to_string()),
            DataShape::Text(template) => Some(quote_to_string(&fill_template(template, fault))),
            DataShape::Members(members) => Some(encode_members(members, fault)),
        }
    }
}

/// The encoding of each fault by the specification and by convention. Revisions and dialects override it.
pub const COMMON_ERRORS: &[ErrorRow] = &[
    protocol_error(FaultKind::Parse, -32700, "Parse error: {detail}"),
    protocol_error(FaultKind::InvalidRequest, -32600, "Invalid request: {detail}"),
    protocol_error(FaultKind::MissingMethod, -32600, "Invalid request: {detail}"),
    protocol_error(FaultKind::MethodNotFound, -32601, "Method not found: {method}"),
    protocol_error(FaultKind::InvalidParams, -32602, "Invalid params: {detail}"),
    protocol_error(FaultKind::Internal, -32603, "Internal error: {detail}"),
    protocol_error(FaultKind::NotInitialized, -32600, "Invalid request: {detail}"),
    protocol_error(FaultKind::AlreadyInitialized, -32600, "Invalid request: {detail}"),
    protocol_error(FaultKind::UnknownTool, -32602, "Unknown tool: {tool}"),
    tool_result(FaultKind::InvalidArguments, -32602, "Invalid arguments for tool {tool}: {detail}"),
    tool_result(FaultKind::ToolFailed, -32603, "{detail}"),
    protocol_error(FaultKind::ToolPanicked, -32603, "Internal error: tool {tool} panicked"),
    protocol_with_data(FaultKind::ResourceNotFound, -32602, "Resource not found: {uri}"),
    protocol_with_data(FaultKind::ResourceDenied, -32602, "Resource not found: {uri}"),
    protocol_error(FaultKind::UnknownPrompt, -32602, "Unknown prompt: {prompt}"),
    protocol_with_data(FaultKind::BackendUnavailable, -32603, "Internal error: {detail}"),
    protocol_error(FaultKind::HeaderMismatch, -32020, "Header mismatch: {detail}"),
    protocol_with_data(FaultKind::UnsupportedVersion, -32022, "Unsupported protocol version"),
    protocol_with_data(FaultKind::MissingCapability, -32021, "{detail}"),
    protocol_with_data(FaultKind::StateRefused, -32602, "Invalid params: {detail}"),
    tool_result(FaultKind::InputRefused, -32603, "Input refused: {detail}"),
    protocol_with_data(FaultKind::Timeout, -32603, "Internal error: {detail}"),
    protocol_with_data(FaultKind::Busy, -32603, "Server busy: {detail}"),
    protocol_error(FaultKind::UnknownTask, -32602, "Task not found"),
    protocol_error(FaultKind::TaskOver, -32602, "Cannot cancel the task: {detail}"),
    protocol_with_data(FaultKind::TaskCancelled, -32603, "Task cancelled: {detail}"),
    protocol_with_data(FaultKind::TaskRequired, -32021, "{detail}"),
    protocol_error(FaultKind::TaskForbidden, -32601, "Method not found: {detail}"),
    protocol_with_data(FaultKind::Foreign, -32603, "{detail}"),
    protocol_with_data(FaultKind::InsufficientScope, -32603, "Insufficient scope: {detail}"),
];

const fn protocol_error(kind: FaultKind, code: i32, message: &'static str) -> ErrorRow {
    ErrorRow::fixed(kind, ErrorChannel::ProtocolError(code), message, DataShape::None)
}

const fn protocol_with_data(kind: FaultKind, code: i32, message: &'static str) -> ErrorRow {
    ErrorRow::fixed(kind, ErrorChannel::ProtocolError(code), message, DataShape::FromFault)
}

const fn tool_result(kind: FaultKind, otherwise: i32, message: &'static str) -> ErrorRow {
    ErrorRow::fixed(
        kind,
        ErrorChannel::ToolResult { fallback_code: otherwise },
        message,
        DataShape::None,
    )
}

/// The variables that a template may use.
pub const TEMPLATE_VARIABLES: [&str; 6] = ["tool", "method", "uri", "prompt", "detail", "trace"];

fn fill_template(template: &str, fault: &Fault) -> String {
    let mut filled =
        String::with_capacity(template.len() + fault.subject.len() + fault.detail.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            filled.push('{');
            rest = after;
            continue;
        };
        match name {
            "tool" | "method" | "uri" | "prompt" => filled.push_str(&fault.subject),
            "detail" => filled.push_str(&fault.detail),
            "trace" => filled.push_str(fault.trace.as_deref().unwrap_or_default()),
            other => {
                filled.push('{');
                filled.push_str(other);
                filled.push('}');
            }
        }
        rest = tail;
    }
    filled.push_str(rest);
    filled
}

fn encode_members(members: &[(Cow<'static, str>, Cow<'static, str>)], fault: &Fault) -> String {
    let mut parts = Vec::new();
    for (key, template) in members {
        if template == "{trace}" && fault.trace.is_none() {
            continue;
        }
        parts.push(alloc::format!(
            "{}:{}",
            quote_to_string(key),
            quote_to_string(&fill_template(template, fault))
        ));
    }
    alloc::format!("{{{}}}", parts.join(","))
}

fn quote_to_string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_exactly_one_common_row_in_the_order_of_the_enum() {
        for (position, (kind, name)) in FaultKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, position, "{name}");
            assert_eq!(COMMON_ERRORS[position].kind, *kind, "{name}");
        }
        assert_eq!(COMMON_ERRORS.len(), FaultKind::ALL.len());
    }

    #[test]
    fn a_fault_is_an_error_whose_text_is_its_detail_or_the_message_of_its_kind() {
        let text = |fault: Fault| -> String {
            let error: alloc::boxed::Box<dyn error::Error> = fault.into();
            error.to_string()
        };
        assert_eq!(text(Fault::new(FaultKind::Timeout, "no answer in 5 s")), "no answer in 5 s");
        let unknown = Fault::new(FaultKind::UnknownTool, "").with_subject("add");
        assert_eq!(text(unknown), "Unknown tool: add");
    }

    #[test]
    fn a_template_inserts_subject_and_detail_and_keeps_other_braces() {
        let fault = Fault::new(FaultKind::ToolFailed, "no {tool}").with_subject("add");
        assert_eq!(fill_template("{tool}: {detail} {x} {", &fault), "add: no {tool} {x} {");
    }

    #[test]
    fn a_member_that_is_only_the_trace_is_left_out_without_one() {
        let members = [("tool".into(), "{tool}".into()), ("stacktrace".into(), "{trace}".into())];
        let mut fault = Fault::new(FaultKind::ToolFailed, "").with_subject("a\"b");
        assert_eq!(encode_members(&members, &fault), r#"{"tool":"a\"b"}"#);
        fault.trace = Some("at x".into());
        assert_eq!(encode_members(&members, &fault), r#"{"tool":"a\"b","stacktrace":"at x"}"#);
    }
}
