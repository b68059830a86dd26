//! The response to a caller that is refused.
//!
//! It says what to do and not what was wrong: an unknown user, a wrong password, a malformed header and an expired key
//! get the same status, headers and body.

use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

/// The HTTP response for a refused caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Challenge {
    /// 401, 403, 429 or 503.
    pub status: StatusCode,
    /// `WWW-Authenticate`, `Retry-After` and the headers of the body.
    pub headers: HeaderMap,
    /// A sentence for the user, as plain text.
    pub body: &'static str,
}

/// The authentication schemes that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schemes {
    pub(super) basic: bool,
    pub(super) bearer: bool,
}

impl Challenge {
    /// 401: the credentials belong to no principal. `bearer_given`: they were a bearer key (RFC 6750, 3.1).
    pub(super) fn unauthorized(schemes: Schemes, bearer_given: bool) -> Self {
        let mut challenge = Self::new(StatusCode::UNAUTHORIZED, instructions_for(schemes));
        let mut offer = |text| {
            challenge.headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(text));
        };
        if schemes.basic {
            offer("Basic realm=\"creole\", charset=\"UTF-8\"");
        }
        if schemes.bearer && bearer_given {
            offer("Bearer realm=\"creole\", error=\"invalid_token\"");
        } else if schemes.bearer {
            offer("Bearer realm=\"creole\"");
        }
        challenge
    }

    /// 403: the principal is known, and does not have the role.
    pub(super) fn forbidden(role: &str, bearer_given: bool) -> Self {
        let mut challenge = Self::new(StatusCode::FORBIDDEN, FORBIDDEN);
        let text =
            format!("Bearer realm=\"creole\", error=\"insufficient_scope\", scope=\"{role}\"");
        if let Some(value) = HeaderValue::try_from(text).ok().filter(|_| bearer_given) {
            challenge.headers.append(WWW_AUTHENTICATE, value);
        }
        challenge
    }

    /// 429: there were too many failed attempts.
    pub(super) fn too_many_attempts(wait: Duration) -> Self {
        Self::retry_later(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_ATTEMPTS, wait)
    }

    /// 503: too many passwords wait to be verified.
    pub(super) fn busy() -> Self {
        Self::retry_later(StatusCode::SERVICE_UNAVAILABLE, BUSY, Duration::from_secs(1))
    }

    fn retry_later(status: StatusCode, body: &'static str, wait: Duration) -> Self {
        let mut challenge = Self::new(status, body);
        // Rounded up, so that a caller that waits as long may try again.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        challenge.headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        challenge
    }

    fn new(status: StatusCode, body: &'static str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self { status, headers, body }
    }

    /// The challenge as a response.
    pub fn into_response<B: From<&'static str>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

fn instructions_for(schemes: Schemes) -> &'static str {
    match schemes {
        Schemes { basic: true, bearer: true } => BASIC_OR_BEARER,
        Schemes { basic: true, bearer: false } => BASIC,
        Schemes { basic: false, .. } => BEARER,
    }
}

const BASIC_OR_BEARER: &str = "Authentication required. Send the header `Authorization: Basic` \
    with a user name and password, or `Authorization: Bearer` with a key. The operator of the \
    server provides them.\n";
const BASIC: &str = "Authentication required. Send the header `Authorization: Basic` with a user \
    name and password. The operator of the server provides them.\n";
const BEARER: &str = "Authentication required. Send the header `Authorization: Bearer` with a \
    key. The operator of the server provides it.\n";
const FORBIDDEN: &str = "Forbidden: your account does not have the role that this server \
    requires. The operator of the server can grant it.\n";
const TOO_MANY_ATTEMPTS: &str =
    "Too many failed attempts. Wait for the time in the header `Retry-After`.\n";
const BUSY: &str = "Too many authentications are in progress. Try again later.\n";
