//! The type of error of a call, as the metrics name it.

use std::sync::LazyLock;

use creole_proto::fault::FaultKind;

use crate::telemetry::facts::Transport;
use crate::telemetry::metrics::{NetworkTransport, OTHER};
use crate::telemetry::outcome::CallOutcome;

/// The codes that a server's own error never has: the request was wrong (OpenTelemetry's conventions for MCP).
const CLIENT_ERRORS: [i64; 5] = [-32700, -32600, -32601, -32602, -32002];

impl From<Transport> for NetworkTransport {
    fn from(transport: Transport) -> Self {
        match transport {
            Transport::Pipe => Self::Pipe,
            Transport::Http { .. } => Self::Tcp,
        }
    }
}

/// The type of error of a call on the server's side. Empty if it is none, or the client's own.
#[inline]
pub(crate) fn server_error_type(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Success | CallOutcome::InputRequired | CallOutcome::Task => "",
        CallOutcome::Fault(FaultKind::UnknownTool, _) => "unknown_tool",
        CallOutcome::ToolError | CallOutcome::Fault(_, None) => "tool_error",
        CallOutcome::Fault(_, Some(code)) if CLIENT_ERRORS.contains(&code) => "",
        CallOutcome::Fault(_, Some(code)) => code_text(code),
        CallOutcome::Cancelled => "cancelled",
    }
}

/// The type of error of a request to an upstream. Every code is an error there.
pub fn client_error_type(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Fault(_, Some(code)) => code_text(code),
        other => server_error_type(other),
    }
}

/// A code of JSON-RPC or of MCP as text. Others, which an upstream may invent, have one text.
#[cold]
fn code_text(code: i64) -> &'static str {
    /// The codes from -32000 downwards that JSON-RPC leaves to implementations, and those that it defines.
    static CODES: LazyLock<Vec<String>> = LazyLock::new(|| {
        (0..100)
            .map(|offset| -32000 - offset)
            .chain(JSON_RPC)
            .map(|code| code.to_string())
            .collect()
    });
    const JSON_RPC: [i64; 5] = [-32700, -32600, -32601, -32602, -32603];
    let index = match code {
        -32099..=-32000 => usize::try_from(-32000 - code).ok(),
        _ => JSON_RPC.iter().position(|known| *known == code).map(|index| index + 100),
    };
    index.and_then(|index| CODES.get(index)).map_or(OTHER, String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_client_are_none_of_the_server() {
        let of = |kind, code| CallOutcome::Fault(kind, code);
        let cases = [
            (CallOutcome::Success, "", ""),
            (CallOutcome::InputRequired, "", ""),
            (CallOutcome::ToolError, "tool_error", "tool_error"),
            (CallOutcome::Cancelled, "cancelled", "cancelled"),
            (of(FaultKind::ToolFailed, None), "tool_error", "tool_error"),
            (of(FaultKind::UnknownTool, Some(-32602)), "unknown_tool", "-32602"),
            (of(FaultKind::InvalidParams, Some(-32602)), "", "-32602"),
            (of(FaultKind::MethodNotFound, Some(-32601)), "", "-32601"),
            (of(FaultKind::Internal, Some(-32603)), "-32603", "-32603"),
            (of(FaultKind::Busy, Some(-32000)), "-32000", "-32000"),
            (of(FaultKind::Foreign, Some(-32099)), "-32099", "-32099"),
            (of(FaultKind::Foreign, Some(42)), "_OTHER", "_OTHER"),
        ];
        for (outcome, server, client) in cases {
            let types = (server_error_type(outcome), client_error_type(outcome));
            assert_eq!(types, (server, client), "{outcome:?}");
        }
    }
}
