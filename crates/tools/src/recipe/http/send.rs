//! Sends the request of one call, retries it where that is safe, and converts the response.

use std::time::Duration;

use bytes::Bytes;
use creole::internal::fetch::{FetchError, FetchRequest, Fetcher};
use creole::{Schema, ToolError, ToolResult};
use http::Response;
use http::header::RETRY_AFTER;
use http::uri::Authority;
use serde_json::Value;

use super::{HttpRunner, request, response};
use crate::recipe::argument::ArgumentValues;
use crate::recipe::secret::{Secret, redact};
use crate::recipe::tool_result::head_of;

/// The delay before the first retry; it doubles with each further one.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(250);
/// Maximum delay: a service that demands more is not retried.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

impl HttpRunner {
    /// Calls the service.
    pub(crate) async fn call(
        &self,
        values: &ArgumentValues<'_>,
        max_length: usize,
        output: Option<&Schema>,
    ) -> Result<ToolResult, ToolError> {
        let (sent, secrets) = request::build_request(&self.recipe, values)?;
        let result =
            fetch_success(&self.fetcher, &sent, &secrets, self.recipe.retries, max_length).await?;
        response::to_tool_result(&self.recipe.response, &result, values, max_length, output)
    }
}

/// A successful response of a service, with retries.
pub(crate) async fn fetch_success(
    fetcher: &Fetcher,
    sent: &FetchRequest,
    secrets: &[Secret],
    retries: u32,
    max_length: usize,
) -> Result<Response<Bytes>, ToolError> {
    check_success(fetch_any_status(fetcher, sent, retries, max_length).await?, secrets)
}

/// A response of a service with any status.
pub(crate) async fn fetch_any_status(
    fetcher: &Fetcher,
    sent: &FetchRequest,
    retries: u32,
    max_length: usize,
) -> Result<Response<Bytes>, ToolError> {
    let response = fetch_with_retries(fetcher, sent, retries, max_length).await;
    response.map_err(|error| {
        let message = describe_failure(&error, max_length);
        // The log names the service.
        let host = sent.url.authority().map(Authority::as_str).unwrap_or_default();
        tracing::warn!(host, "{message}");
        ToolError::failed(message)
    })
}

/// Checks that a response is successful.
pub(crate) fn check_success(
    response: Response<Bytes>,
    secrets: &[Secret],
) -> Result<Response<Bytes>, ToolError> {
    match response.status().is_success() {
        true => Ok(response),
        false => Err(error_for_status(&response, secrets)),
    }
}

async fn fetch_with_retries(
    fetcher: &Fetcher,
    sent: &FetchRequest,
    retries: u32,
    max_length: usize,
) -> Result<Response<Bytes>, FetchError> {
    let mut pause = FIRST_RETRY_DELAY;
    for _ in 0..retries {
        let response = fetcher.fetch(sent, max_length).await;
        let Some(wait) = retry_delay(&response, pause) else { return response };
        tokio::time::sleep(wait).await;
        pause *= 2;
    }
    fetcher.fetch(sent, max_length).await
}

/// The delay before a retry; `None` if a retry is useless.
fn retry_delay(
    response: &Result<Response<Bytes>, FetchError>,
    pause: Duration,
) -> Option<Duration> {
    match response {
        Err(FetchError::Unreachable(_) | FetchError::ConnectFailed(_)) => Some(pause),
        Err(_) => None,
        Ok(response) if matches!(response.status().as_u16(), 429 | 502 | 503 | 504) => {
            let asked = response
                .headers()
                .get(RETRY_AFTER)
                .and_then(|header_value| header_value.to_str().ok());
            let asked = asked.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
            Some(asked.unwrap_or(pause).max(pause)).filter(|wait| *wait <= MAX_RETRY_DELAY)
        }
        Ok(_) => None,
    }
}

/// The error for the model when there is no response.
fn describe_failure(error: &FetchError, max_length: usize) -> String {
    match error {
        FetchError::NotPublic => {
            "the host name of the service resolves to an address that is not public; set \
                `allow_private = true` to allow it"
                .to_owned()
        }
        FetchError::TooLong => format!("the response is longer than {max_length} bytes"),
        FetchError::Unreachable(reason) | FetchError::ConnectFailed(reason) => reason.clone(),
    }
}

/// The error for the model when the service refuses.
fn error_for_status(response: &Response<Bytes>, secrets: &[Secret]) -> ToolError {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut message = format!("the service responded with status {} {reason}", status.as_u16());
    message.truncate(message.trim_end().len());
    if status.is_redirection() {
        message.push_str("; redirects are not followed");
    } else if let Some(text) = problem_detail(response)
        && !text.trim().is_empty()
    {
        message.push_str(":\n");
        message.push_str(&head_of(&redact(&text, secrets)));
    }
    ToolError::failed(message)
}

/// The service's explanation of a refusal: the members for people of problem details (RFC 9457).
fn problem_detail(result: &Response<Bytes>) -> Option<String> {
    let text = std::str::from_utf8(result.body()).ok()?;
    if response::media_type(result) == "application/problem+json"
        && let Ok(details) = serde_json::from_str::<Value>(text)
    {
        let said = ["title", "detail"].map(|member| details[member].as_str());
        let messages: Vec<&str> = said.into_iter().flatten().collect();
        if !messages.is_empty() {
            return Some(messages.join(": "));
        }
    }
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, after: Option<&str>) -> Result<Response<Bytes>, FetchError> {
        let mut answer = Response::builder().status(status);
        if let Some(after) = after {
            answer = answer.header(RETRY_AFTER, after);
        }
        Ok(answer.body(Bytes::new()).unwrap())
    }

    #[test]
    fn temporary_errors_are_retried_and_others_are_not() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(retry_delay(&answered(503, None), FIRST_RETRY_DELAY), Some(FIRST_RETRY_DELAY));
        assert_eq!(retry_delay(&answered(429, Some("2")), FIRST_RETRY_DELAY), seconds(2));
        assert_eq!(
            retry_delay(&answered(429, Some("0")), FIRST_RETRY_DELAY),
            Some(FIRST_RETRY_DELAY)
        );
        assert_eq!(
            retry_delay(&answered(429, Some("soon")), FIRST_RETRY_DELAY),
            Some(FIRST_RETRY_DELAY)
        );
        assert_eq!(retry_delay(&answered(429, Some("31")), FIRST_RETRY_DELAY), None);
        for status in [200, 302, 400, 401, 404, 500] {
            assert_eq!(
                retry_delay(&answered(status, Some("1")), FIRST_RETRY_DELAY),
                None,
                "{status}"
            );
        }
        assert_eq!(
            retry_delay(&Err(FetchError::Unreachable("x".into())), FIRST_RETRY_DELAY),
            Some(FIRST_RETRY_DELAY)
        );
        assert_eq!(retry_delay(&Err(FetchError::NotPublic), FIRST_RETRY_DELAY), None);
    }

    #[test]
    fn an_error_contains_the_status_and_a_bounded_body_without_secrets() {
        let body = format!("token hunter2000 is wrong {}", "x".repeat(100_000));
        let response = Response::builder().status(401).body(Bytes::from(body)).unwrap();
        let ToolError::Failed(text) = error_for_status(&response, &[Secret("hunter2000".into())])
        else {
            panic!("a refusal is a failure");
        };
        assert!(
            text.starts_with("the service responded with status 401 Unauthorized:\ntoken [secret]")
        );
        assert!(text.len() < 5000);
    }

    #[test]
    fn the_title_and_detail_of_a_problem_document_are_shown() {
        let told = |media: &str, body: &'static str| {
            let answer = Response::builder().status(422).header("content-type", media);
            let response = answer.body(Bytes::from_static(body.as_bytes())).unwrap();
            match error_for_status(&response, &[]) {
                ToolError::Failed(text) => text.lines().skip(1).collect::<Vec<_>>().join("\n"),
                other => panic!("{other:?}"),
            }
        };
        let body = r#"{"type":"about:blank","title":"No","detail":"Too late","x":1}"#;
        assert_eq!(told("application/problem+json", body), "No: Too late");
        assert_eq!(told("application/json", body), body);
        assert_eq!(told("application/problem+json", "{"), "{");
    }
}
