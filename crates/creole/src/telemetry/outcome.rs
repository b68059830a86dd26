//! How calls end.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::{Outcome, Payload};

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// With a result.
    Success,
    /// With a result in which the tool reports a failure.
    ToolError,
    /// With a fault of this kind, and with this code, unless the fault is part of a tool result.
    Fault(FaultKind, Option<i64>),
    /// With input requests, which the client answers in its next round.
    InputRequired,
    /// With a task.
    Task,
    /// Without a response: the client cancelled it or left.
    Cancelled,
}

impl CallOutcome {
    /// How a call with this outcome ended. `code` gives the code of a fault, unless it is part of a tool result.
    #[inline]
    pub fn of(outcome: &Outcome, code: impl FnOnce(&Fault) -> Option<i64>) -> Self {
        match outcome {
            Outcome::Complete(Payload::Tool(result)) if result.is_error => Self::ToolError,
            Outcome::Complete(Payload::Relayed(relayed)) if relayed.is_error() => Self::ToolError,
            Outcome::Complete(Payload::TaskCreated(_)) | Outcome::Detach(_) => Self::Task,
            Outcome::Complete(_) => Self::Success,
            Outcome::InputRequired { .. } => Self::InputRequired,
            Outcome::Fail(fault) if fault.kind == FaultKind::ToolFailed => Self::ToolError,
            Outcome::Fail(fault) => Self::Fault(fault.kind, code(fault)),
        }
    }

    /// The word for the console and the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::ToolError => "tool_error",
            Self::Fault(..) => "fault",
            Self::InputRequired => "input_required",
            Self::Task => "task",
            Self::Cancelled => "cancelled",
        }
    }

    /// Why the call failed, if it did.
    pub fn error(self) -> Option<ErrorType> {
        match self {
            Self::ToolError => Some(ErrorType::ToolError),
            Self::Fault(kind, _) => Some(ErrorType::Fault(kind)),
            Self::Cancelled => Some(ErrorType::Cancelled),
            Self::Success | Self::InputRequired | Self::Task => None,
        }
    }
}

/// The end of a call.
#[derive(Clone, Debug)]
pub struct CallEnd {
    /// How long the call took.
    pub duration: Duration,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The rule of a policy that refused it.
    pub denied_by: Option<Arc<str>>,
}

/// Why a call or a step failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorType {
    /// The tool reported a failure in its result.
    ToolError,
    /// A fault of this kind.
    Fault(FaultKind),
    /// An upstream's error of this code.
    Code(i64),
    /// The caller left.
    Cancelled,
}

impl ErrorType {
    /// The word for metrics, traces and the console. It never contains a text of a client or an upstream.
    pub fn name(self) -> Cow<'static, str> {
        match self {
            Self::ToolError => "tool_error".into(),
            Self::Fault(kind) if kind.name().contains('-') => kind.name().replace('-', "_").into(),
            Self::Fault(kind) => kind.name().into(),
            Self::Code(code) => code.to_string().into(),
            Self::Cancelled => "cancelled".into(),
        }
    }
}
