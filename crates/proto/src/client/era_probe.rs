//! The era probe: determines a server's era from its response to `server/discover`
//! (2026-07-28 basic/versioning, backward compatibility with initialization-based versions).
//!
//! A verdict needs evidence. An outage or a demand for credentials is no evidence of an era.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use crate::revision::{Opening, Revision, Rules};
use crate::wire;
use crate::wire::{Frame, Object, unquote};

/// The reply to the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeReply<'a> {
    /// An HTTP response; of an event stream, the message with the response.
    HttpResponse {
        /// Its status.
        status: u16,
        /// Its body.
        body: &'a [u8],
    },
    /// No HTTP response: the connection was refused or broke, or the timeout expired.
    NoHttpResponse,
    /// A line of a process.
    Line(&'a [u8]),
    /// No line from a running process. Three seconds are a sufficient timeout.
    NoLine,
    /// The process ended. Some servers exit on any request before the handshake.
    ProcessExited,
    /// The process could not be started.
    NoProcess,
}

/// The conclusion from the reply.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeVerdict {
    /// The server is stateless and supports this revision.
    Stateless(&'static Rules),
    /// The server needs a handshake.
    Handshake,
    /// The server supports only versions that are unknown here.
    UnsupportedVersions(Vec<String>),
    /// The reply is no evidence.
    NoEvidence(NoEvidenceReason),
}

/// The reason why a reply is no evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEvidenceReason {
    /// Credentials are missing, wrong or too weak.
    Credentials,
    /// The server is unreachable or temporarily unavailable.
    Outage,
    /// The reply does not come from an MCP server.
    NotAnMcpServer,
    /// An error that servers of both eras return.
    Ambiguous(i64),
}

/// Judges the reply to a `server/discover` request of this revision
/// (2026-07-28 basic/versioning, backward compatibility with initialization-based versions).
pub fn judge_reply(reply: ProbeReply<'_>, rules: &'static Rules) -> ProbeVerdict {
    match reply {
        ProbeReply::NoHttpResponse | ProbeReply::NoProcess => {
            ProbeVerdict::NoEvidence(NoEvidenceReason::Outage)
        }
        ProbeReply::NoLine | ProbeReply::ProcessExited => ProbeVerdict::Handshake,
        ProbeReply::Line(line) => judge_message(line, rules).unwrap_or(ProbeVerdict::Handshake),
        ProbeReply::HttpResponse { status, body } => judge_http(status, body, rules),
    }
}

/// Whether this status for `initialize` suggests the transport of 2024-11-05, in which a GET opens an event stream
/// (2025-11-25 basic/transports, backwards compatibility).
pub fn suggests_legacy_sse(status: u16) -> bool {
    matches!(status, 400 | 404 | 405)
}

fn judge_http(status: u16, body: &[u8], rules: &'static Rules) -> ProbeVerdict {
    match status {
        401 | 403 | 407 => ProbeVerdict::NoEvidence(NoEvidenceReason::Credentials),
        408 | 425 | 429 | 500.. => ProbeVerdict::NoEvidence(NoEvidenceReason::Outage),
        400..=499 => judge_message(body, rules).unwrap_or(ProbeVerdict::Handshake),
        200..=299 if body.trim_ascii().is_empty() => ProbeVerdict::Handshake,
        200..=299 => judge_message(body, rules)
            .unwrap_or(ProbeVerdict::NoEvidence(NoEvidenceReason::NotAnMcpServer)),
        _ => ProbeVerdict::NoEvidence(NoEvidenceReason::NotAnMcpServer),
    }
}

/// Judges a message; `None` if the bytes are not a message.
fn judge_message(bytes: &[u8], rules: &'static Rules) -> Option<ProbeVerdict> {
    let Ok(Frame::One(fields)) = wire::scan(bytes, &wire::ScanLimits::default()) else {
        return None;
    };
    if let Some(error) = fields.error.and_then(Object::new) {
        return Some(judge_error(error));
    }
    let result = fields.result.and_then(Object::new)?;
    match result.array("supportedVersions").ok().flatten() {
        Some(versions) => Some(judge_versions(&versions)),
        // A result with `resultType` and `capabilities` is of the stateless era, even if other members are missing.
        None if result.get("resultType").is_some() && result.get("capabilities").is_some() => {
            Some(ProbeVerdict::Stateless(rules))
        }
        None => Some(ProbeVerdict::Handshake),
    }
}

fn judge_error(error: Object<'_>) -> ProbeVerdict {
    let code = error.get("code").and_then(|code| code.parse::<i64>().ok());
    match code {
        Some(-32022) => {
            let data = error.get("data").and_then(Object::new).unwrap_or(Object::EMPTY);
            judge_versions(&data.array("supported").ok().flatten().unwrap_or_default())
        }
        Some(code @ (-32020 | -32021 | -32001)) => {
            ProbeVerdict::NoEvidence(NoEvidenceReason::Ambiguous(code))
        }
        _ => ProbeVerdict::Handshake,
    }
}

/// The newest stateless version in the list; otherwise a handshake, if the list has a version with one.
fn judge_versions(versions: &[&str]) -> ProbeVerdict {
    let names: Vec<_> = versions.iter().filter_map(|raw| unquote(raw)).collect();
    let known = |opening| {
        let revisions = names.iter().filter_map(|name| Revision::from_name(name));
        revisions.filter(|revision| revision.rules().opening == opening).max()
    };
    match (known(Opening::Discover), known(Opening::Initialize)) {
        (Some(revision), _) => ProbeVerdict::Stateless(revision.rules()),
        (None, Some(_)) => ProbeVerdict::Handshake,
        (None, None) if names.is_empty() => ProbeVerdict::Handshake,
        (None, None) => {
            ProbeVerdict::UnsupportedVersions(names.into_iter().map(Cow::into_owned).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest() -> &'static Rules {
        Rules::CANONICAL
    }

    fn http(status: u16, body: &str) -> ProbeVerdict {
        judge_reply(ProbeReply::HttpResponse { status, body: body.as_bytes() }, newest())
    }

    fn error(code: i64, data: &str) -> String {
        alloc::format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"m","data":{data}}}}}"#
        )
    }

    const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",
        "supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{}}}"#;

    #[test]
    fn a_server_that_answers_is_of_the_newer_era() {
        assert_eq!(http(200, DISCOVERED), ProbeVerdict::Stateless(newest()));
        assert_eq!(
            judge_reply(ProbeReply::Line(DISCOVERED.as_bytes()), newest()),
            ProbeVerdict::Stateless(newest())
        );
        let both = error(-32022, r#"{"supported":["2025-11-25","2026-07-28"]}"#);
        assert_eq!(http(400, &both), ProbeVerdict::Stateless(newest()));
    }

    #[test]
    fn other_errors_are_of_the_older_era() {
        let old = error(-32022, r#"{"supported":["2025-11-25"]}"#);
        let rows = [
            (400, old.as_str()),
            (404, ""),
            (405, "Method Not Allowed"),
            (400, "<html>"),
            (202, ""),
            (200, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
        ];
        for (status, body) in rows {
            assert_eq!(http(status, body), ProbeVerdict::Handshake, "{status} {body}");
        }
        for code in [-32601, -32600, -32602, -32000, -32003] {
            assert_eq!(http(200, &error(code, "null")), ProbeVerdict::Handshake);
            let line = error(code, "null");
            assert_eq!(
                judge_reply(ProbeReply::Line(line.as_bytes()), newest()),
                ProbeVerdict::Handshake
            );
        }
        for reply in [ProbeReply::ProcessExited, ProbeReply::NoLine, ProbeReply::Line(b"hello")] {
            assert_eq!(judge_reply(reply, newest()), ProbeVerdict::Handshake);
        }
    }

    #[test]
    fn a_reply_that_says_nothing_about_the_era_is_no_evidence() {
        let rows = [
            (401, NoEvidenceReason::Credentials),
            (403, NoEvidenceReason::Credentials),
            (500, NoEvidenceReason::Outage),
            (503, NoEvidenceReason::Outage),
            (429, NoEvidenceReason::Outage),
            (301, NoEvidenceReason::NotAnMcpServer),
        ];
        for (status, reason) in rows {
            assert_eq!(http(status, DISCOVERED), ProbeVerdict::NoEvidence(reason), "{status}");
        }
        assert_eq!(http(200, "<html>"), ProbeVerdict::NoEvidence(NoEvidenceReason::NotAnMcpServer));
        for code in [-32020, -32021, -32001] {
            let expected = ProbeVerdict::NoEvidence(NoEvidenceReason::Ambiguous(code));
            assert_eq!(http(400, &error(code, "null")), expected);
        }
        for reply in [ProbeReply::NoHttpResponse, ProbeReply::NoProcess] {
            assert_eq!(
                judge_reply(reply, newest()),
                ProbeVerdict::NoEvidence(NoEvidenceReason::Outage)
            );
        }
    }

    #[test]
    fn versions_of_the_future_are_reported() {
        let future = error(-32022, r#"{"supported":["2031-01-01"]}"#);
        assert_eq!(
            http(400, &future),
            ProbeVerdict::UnsupportedVersions(Vec::from(["2031-01-01".into()]))
        );
    }
}
