//! Faults of HTTP requests, described without secrets: they repeat neither URLs nor headers nor bodies.

use std::error::Error;

use creole_oauth::discovery::challenge::Challenge;
use creole_oauth::scopes::Scopes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::wire::Raw;
use http::StatusCode;
use serde_json::json;

use crate::client::transport::http::conn::connect_failure::describe_failure;
use crate::client::transport::http::conn::pool::SendError;
use crate::client::transport::http::conn::response::ResponseHead;
use crate::process::unavailable_fault;

/// The server could not be reached, or the connection broke before the response.
pub(crate) fn unreachable_fault(name: &str, error: &SendError) -> Fault {
    match error {
        SendError::Connect(error) => connect_fault(name, &**error, true),
        SendError::Lost(error) => connect_fault(name, &**error, false),
    }
}

/// The same for any error, while connecting or afterwards.
pub(crate) fn connect_fault(name: &str, error: &(dyn Error + 'static), is_connect: bool) -> Fault {
    let (message, reason) = describe_failure(error, is_connect);
    unavailable_fault(name, format!("`{name}` {message}"), reason)
}

/// Where credentials are set.
const CREDENTIALS: &str =
    "`headers`, `token_file` or `token_command` of this upstream, or `--header`";

/// The server responded with a status that is no JSON-RPC response, to a request with or without credentials.
pub(crate) fn status_fault(name: &str, has_credentials: bool, head: &ResponseHead) -> Fault {
    let status = head.status.as_u16();
    let (description, reason) = match status {
        401 if has_credentials => ("refused these credentials", "unauthorized"),
        401 => ("requires credentials", "unauthorized"),
        403 => ("denies access", "forbidden"),
        404 | 405 => ("has no MCP endpoint at this path, which is often `/mcp`", "not_found"),
        407 => ("is behind a proxy that requires other credentials", "proxy"),
        413 => ("refuses messages of this size", "too_large"),
        429 => ("reports that the rate limit is reached", "rate_limited"),
        300..=399 => ("responded with a redirect, which is not followed", "redirected"),
        500..=599 => ("is not available", "unavailable"),
        _ => ("refuses the request", "refused"),
    };
    let scopes = missing_scopes(head);
    let reason = if scopes.is_some() { "insufficient_scope" } else { reason };
    let mut data = json!({"reason": reason, "upstream": name, "status": status});
    let mut detail = match scopes {
        Some(scopes) => format!("`{name}` requires the scopes `{scopes}` (status {status})"),
        None => format!("`{name}` {description} (status {status})"),
    };
    if status == 401 {
        let description = if has_credentials { "correct" } else { "set" };
        detail.push_str(&format!("; {description} {CREDENTIALS}"));
    }
    if let Some(seconds) = head.retry_after {
        data["retryAfter"] = json!(seconds);
        detail.push_str(&format!("; try again in {seconds} s"));
    }
    let fault = Fault::new(FaultKind::BackendUnavailable, detail);
    fault.with_subject(name).with_data(Raw::from_value(&data))
}

/// The scopes that the server demands with status 403 (RFC 6750, section 3.1).
fn missing_scopes(head: &ResponseHead) -> Option<String> {
    if head.status != StatusCode::FORBIDDEN {
        return None;
    }
    let challenges = Challenge::parse_all(head.challenges.iter().map(String::as_str));
    let parameter = |name| Challenge::oauth_parameter(&challenges, name);
    parameter("error").filter(|error| *error == "insufficient_scope")?;
    Scopes::parse(parameter("scope")?).to_parameter()
}

/// The stream of a call broke off before its response; it is unknown whether the call was executed.
pub(crate) fn stream_lost(name: &str) -> Fault {
    unavailable_fault(
        name,
        format!("`{name}` closed the stream before it responded"),
        "stream_lost",
    )
}

/// The same, and the server cannot even be connected to.
pub(crate) fn stream_gone(name: &str) -> Fault {
    let detail =
        format!("`{name}` closed the stream before it responded, and can no longer be reached");
    unavailable_fault(name, detail, "stream_lost")
}

/// The server has lost our session. It has not processed the request.
pub(crate) fn session_lost(name: &str) -> Fault {
    let data = json!({"reason": "session_lost", "upstream": name, "sent": false});
    Fault::new(FaultKind::BackendUnavailable, format!("`{name}` no longer has the session"))
        .with_subject(name)
        .with_data(Raw::from_value(&data))
}

/// The response needs more memory than the budget has left.
pub(crate) fn no_memory_fault(name: &str) -> Fault {
    let detail =
        format!("the memory budget for responses of `{name}` is exhausted; try again later");
    unavailable_fault(name, detail, "no_memory")
}

/// The server's HTTP response holds no JSON-RPC response.
pub(crate) fn no_response_fault(name: &str, description: &str) -> Fault {
    unavailable_fault(name, format!("`{name}` responded with {description}"), "no_answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::transport::http::address::HttpAddress;

    #[test]
    fn a_status_is_named_and_the_time_to_wait_is_passed_on() {
        let headers = [("Retry-After", &b"7"[..])];
        let head = ResponseHead::new(StatusCode::TOO_MANY_REQUESTS, headers.into_iter());
        let fault = status_fault("files", false, &head);
        assert_eq!(
            fault.detail,
            "`files` reports that the rate limit is reached (status 429); try again in 7 s"
        );
        assert!(fault.data.unwrap().as_str().contains(r#""retryAfter":7"#));
        let head = ResponseHead::new(StatusCode::FOUND, [].into_iter());
        let fault = status_fault("files", false, &head);
        assert!(fault.detail.contains("not followed"));
    }

    #[test]
    fn a_403_names_the_missing_scopes() {
        let head = |challenge: &'static str| {
            let headers = [("WWW-Authenticate", challenge.as_bytes())];
            status_fault(
                "wiki",
                true,
                &ResponseHead::new(StatusCode::FORBIDDEN, headers.into_iter()),
            )
        };
        let fault = head("Bearer error=\"insufficient_scope\", scope=\"a b\"");
        assert_eq!(fault.detail, "`wiki` requires the scopes `a b` (status 403)");
        assert!(fault.data.unwrap().as_str().contains(r#""reason":"insufficient_scope""#));
        for challenge in ["Bearer scope=\"a\"", "Bearer error=\"insufficient_scope\"", ""] {
            assert_eq!(head(challenge).detail, "`wiki` denies access (status 403)");
        }
    }

    #[test]
    fn a_401_says_whether_credentials_were_sent_and_where_they_are_set() {
        let head = ResponseHead::new(StatusCode::UNAUTHORIZED, [].into_iter());
        let bare = HttpAddress::new("wiki", "http://h/mcp").unwrap();
        let bare = bare.header("User-Agent", "x").unwrap();
        let expected = "`wiki` requires credentials (status 401); set `headers`, `token_file` or `token_command` of \
                        this upstream, or `--header`";
        assert_eq!(bare.status_fault(&head).detail, expected);
        let sent = bare.header("X-Api-Key", "wrong").unwrap();
        let expected = "`wiki` refused these credentials (status 401); correct `headers`, `token_file` or \
                        `token_command` of this upstream, or `--header`";
        assert_eq!(sent.status_fault(&head).detail, expected);
    }
}
