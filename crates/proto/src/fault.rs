//! What can go wrong, named once, and the tables that turn each fault into a code, a text and data.
//!
//! A handler or a rule says *what* went wrong; the revision and the dialect say how that is written.
//! A bare code means nothing by itself: -32002 is "resource not found", "invalid tool params" or "platform
//! not available" depending on who speaks.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::wire::{Raw, quote};

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    /// The bytes are not JSON.
    Parse,
    /// The JSON is not a JSON-RPC message, or breaks a limit.
    InvalidRequest,
    /// A request without a method.
    MissingMethod,
    /// A method that does not exist here.
    MethodNotFound,
    /// Parameters of the wrong shape.
    InvalidParams,
    /// A fault of ours.
    Internal,
    /// Work asked for before the handshake.
    NotInitialized,
    /// A second handshake where only one is allowed.
    AlreadyInitialized,
    /// A tool that does not exist.
    UnknownTool,
    /// Arguments that the tool's schema refuses.
    InvalidArguments,
    /// The tool ran and failed.
    ToolFailed,
    /// The tool broke down.
    ToolPanicked,
    /// A resource that does not exist.
    ResourceNotFound,
    /// A resource that this caller may not read.
    ResourceDenied,
    /// A prompt that does not exist.
    UnknownPrompt,
    /// The system behind the server is not available.
    BackendUnavailable,
    /// A header of an HTTP request that is missing, unreadable or says something else than the body.
    HeaderMismatch,
    /// A protocol version that is not served.
    UnsupportedVersion,
    /// The client lacks a capability that the operation needs.
    MissingCapability,
    /// A `requestState` that is tampered with, expired or foreign.
    StateRefused,
    /// The client refused to answer a question.
    InputRefused,
    /// The call took too long.
    Timeout,
    /// Too many calls are in flight.
    Busy,
    /// A task that does not exist, no longer exists or is another caller's: nobody is told which.
    UnknownTask,
    /// A task that is over and cannot be cancelled.
    TaskOver,
    /// What a cancelled task comes to.
    TaskCancelled,
    /// A tool that only runs as a task.
    TaskRequired,
    /// A tool that does not run as a task.
    TaskForbidden,
    /// What another server told, under a code of its own.
    Foreign,
}

impl FaultKind {
    /// Every kind with the name used in configuration and documents.
    pub const ALL: [(Self, &'static str); 29] = [
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
    /// As its name.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for FaultKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| D::Error::custom("no kind of fault has this name"))
    }
}

/// One fault: its kind and what there is to say about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// What it was about: the tool, method, uri or prompt.
    pub subject: String,
    /// A sentence for people.
    pub detail: String,
    /// Facts for machines, where the table says that they are given.
    pub data: Option<Raw>,
    /// Where it happened, or the last words of a program that ended. Callers are told only in debug mode.
    pub trace: Option<String>,
    /// The code, where another server told of it; the sentence and the data are then that server's.
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

    /// The same fault, about `subject`; of a long one, which only a client can have made up, the beginning.
    #[must_use]
    pub fn with_subject(mut self, subject: &str) -> Self {
        self.subject = subject.chars().take(MAX_SUBJECT_CHARS).collect();
        self
    }

    /// The same fault with facts for machines.
    #[must_use]
    pub fn with_data(mut self, data: Raw) -> Self {
        self.data = Some(data);
        self
    }

    /// What a caller may be told of a fault between us and another server: one that is about how we spoke to it
    /// says nothing about what the caller said, and would be taken for that.
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

    /// The same fault, as another server told it under this code.
    #[must_use]
    pub fn with_foreign_code(mut self, code: i64) -> Self {
        self.foreign_code = Some(code);
        self
    }
}

/// The longest part of a name or uri that an error repeats, in characters.
const MAX_SUBJECT_CHARS: usize = 256;

/// Where a fault is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorChannel {
    /// As a JSON-RPC error with this code.
    ProtocolError(i32),
    /// As a tool result with `isError`, so that the model can react; outside of tool calls as an error
    /// with the code `otherwise`.
    ToolResult {
        /// The code where there is no tool result to put it in.
        fallback_code: i32,
    },
}

/// What goes into the error's `data`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataShape {
    /// Nothing.
    None,
    /// The fault's own data.
    FromFault,
    /// A string.
    Text(Cow<'static, str>),
    /// An object with these members; one whose text is `{trace}` is left out when there is no trace.
    Members(Cow<'static, [(Cow<'static, str>, Cow<'static, str>)]>),
}

/// How one kind of fault is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorRow {
    /// The kind.
    pub kind: FaultKind,
    /// Where it is told.
    pub channel: ErrorChannel,
    /// The message; `{tool}`, `{method}`, `{uri}` and `{prompt}` stand for the subject, `{detail}` and
    /// `{trace}` for what they say.
    pub message: Cow<'static, str>,
    /// What goes into `data`.
    pub data: DataShape,
}

impl ErrorRow {
    /// A row made of constants.
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
        // Another server's sentence was written from such a row already.
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

/// How the specification and good custom write each fault, where no revision or dialect says otherwise.
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
    protocol_error(FaultKind::ToolPanicked, -32603, "Internal error: tool {tool} broke down"),
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
    fn a_template_takes_subject_and_detail_and_leaves_other_braces_alone() {
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
