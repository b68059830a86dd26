//! Replies of handlers, and the responses that they become.

use bytes::Bytes;
use creole::internal::seal::digest;
use creole_proto::wire::hex;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::http::body::AdminBody;
use crate::http::problem::{Problem, ProblemCode};

/// Maximum size of an answer in bytes.
const MAX_ANSWER: usize = 8 * 1024 * 1024;

/// What a handler replies.
pub(crate) struct Reply {
    status: StatusCode,
    content_type: &'static str,
    body: AdminBody,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Reply {
    /// A JSON document.
    pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Result<Self, Problem> {
        let internal = |detail: String| {
            Problem::new(ProblemCode::Internal, "The answer cannot be written").detail(detail)
        };
        let text = serde_json::to_vec(value).map_err(|error| internal(error.to_string()))?;
        if text.len() > MAX_ANSWER {
            let title = format!("The answer is larger than {MAX_ANSWER} bytes");
            return Err(Problem::new(ProblemCode::TooLarge, title)
                .detail("use a filter or a smaller `limit`"));
        }
        Ok(Self::bytes(status, "application/json", text.into()))
    }

    /// Bytes of this type.
    pub(crate) fn bytes(status: StatusCode, content_type: &'static str, bytes: Bytes) -> Self {
        Self { status, content_type, body: bytes.into(), headers: Vec::new() }
    }

    /// Success without a body.
    pub(crate) fn no_content() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            content_type: "",
            body: AdminBody::empty(),
            headers: Vec::new(),
        }
    }

    /// An event stream.
    pub(crate) fn events(pieces: mpsc::Receiver<Bytes>) -> Self {
        let (status, content_type) = (StatusCode::OK, "text/event-stream");
        Self { status, content_type, body: AdminBody::Stream(pieces), headers: Vec::new() }
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The response to a GET, with its digest. A client that has this answer already gets only the status.
    pub(crate) fn with_etag(self, if_none_match: Option<&[u8]>) -> Self {
        let AdminBody::Whole(bytes) = &self.body else { return self };
        if self.status != StatusCode::OK {
            return self;
        }
        let tag = format!("\"{}\"", hex(&digest(bytes)[..16]));
        let known = if_none_match.is_some_and(|tags| {
            tags.split(|byte| *byte == b',').any(|each| each.trim_ascii() == tag.as_bytes())
        });
        let value = HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static(""));
        let reply = match known {
            false => self,
            true => Self {
                status: StatusCode::NOT_MODIFIED,
                content_type: "",
                body: AdminBody::empty(),
                ..self
            },
        };
        reply.header(ETAG, value)
    }

    /// The response.
    pub(crate) fn into_response(self) -> Response<AdminBody> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        if !self.content_type.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        }
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        response
    }
}

impl From<Problem> for Reply {
    fn from(problem: Problem) -> Self {
        let text = serde_json::to_vec(&problem).unwrap_or_default();
        let mut reply = Self::bytes(problem.status(), "application/problem+json", text.into());
        let (wait, allow) = problem.header_values();
        if let Some(seconds) = wait {
            reply = reply.header(RETRY_AFTER, seconds.into());
        }
        if let Some(methods) = allow.and_then(|methods| HeaderValue::from_str(methods).ok()) {
            reply = reply.header(ALLOW, methods);
        }
        if problem.status() == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"creole-admin\"");
            reply = reply.header(WWW_AUTHENTICATE, challenge);
        }
        reply.header(CACHE_CONTROL, HeaderValue::from_static("no-store"))
    }
}
