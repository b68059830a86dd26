//! The response of a server: the relevant fields of its head, and its body, which returns its connection to the pool
//! once it is read.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};

use creole_proto::http::mcp_headers::SESSION_ID_HEADER;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::client::transport::http::conn::http1::Http1Connection;
use crate::client::transport::http::conn::pool::ConnectionPool;

/// The relevant fields of a response's head.
#[derive(Clone, Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: StatusCode,
    pub(crate) kind: ResponseKind,
    /// The session that it names.
    pub(crate) session: Option<HeaderValue>,
    /// The seconds of `Retry-After`. A date is ignored: it does not justify a calendar.
    pub(crate) retry_after: Option<u64>,
}

/// The kind of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseKind {
    Json,
    Events,
    Other,
}

impl ResponseHead {
    /// Reads these headers; of repeated ones the first counts.
    pub(crate) fn new<'a>(
        status: StatusCode,
        headers: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let (mut kind, mut session, mut retry_after) = (None, None, None);
        for (name, value) in headers {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            if is(CONTENT_TYPE.as_str()) {
                kind = kind.or_else(|| Some(ResponseKind::from_media_type(value)));
            } else if is(SESSION_ID_HEADER) {
                session = session.or_else(|| HeaderValue::from_bytes(value).ok());
            } else if is(RETRY_AFTER.as_str()) {
                let seconds =
                    str::from_utf8(value).ok().and_then(|value| value.trim().parse().ok());
                retry_after = retry_after.or(seconds);
            }
        }
        Self { status, kind: kind.unwrap_or(ResponseKind::Other), session, retry_after }
    }

    /// The same for headers in a map.
    pub(crate) fn from_headers(status: StatusCode, headers: &HeaderMap) -> Self {
        Self::new(status, headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
    }
}

impl ResponseKind {
    /// The kind for a media type.
    fn from_media_type(value: &[u8]) -> Self {
        let media = value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if media.eq_ignore_ascii_case(b"application/json") {
            Self::Json
        } else if media.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else {
            Self::Other
        }
    }
}

/// The body of a response. When it is read to its end, it returns its connection; when it is dropped before, it closes
/// it.
pub(crate) enum ResponseBody {
    /// An HTTP/1 body, which owns its connection while it is read.
    Http1(Option<Box<Http1Connection>>, Weak<ConnectionPool>),
    /// One of several bodies on an HTTP/2 connection.
    Http2(Incoming),
}

impl ResponseBody {
    /// The body of a response whose head was read.
    pub(crate) fn http1(connection: Box<Http1Connection>, pool: Weak<ConnectionPool>) -> Self {
        let mut body = Self::Http1(Some(connection), pool);
        body.return_connection();
        body
    }

    /// Returns the connection if another request may follow on it.
    fn return_connection(&mut self) {
        if let Self::Http1(lent, pool) = self
            && let Some(connection) = lent.take_if(|connection| connection.is_free())
            && let Some(pool) = pool.upgrade()
        {
            pool.put_back(connection);
        }
    }

    /// The length of the rest, if it is known.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Http1(None, _) => Some(0),
            Self::Http1(Some(connection), _) => connection.length(),
            Self::Http2(body) => body.size_hint().exact(),
        }
    }

    /// Appends the next piece; returns whether there was one.
    ///
    /// # Errors
    /// When it broke off.
    pub(crate) fn poll_append(
        &mut self,
        context: &mut Context<'_>,
        into: &mut Vec<u8>,
    ) -> Poll<Result<bool, ()>> {
        let more = match self {
            Self::Http1(None, _) => Ok(false),
            Self::Http1(Some(connection), _) => {
                ready!(connection.poll_append(context, into)).map_err(drop)
            }
            Self::Http2(body) => ready!(poll_frame_into(body, context, into)),
        };
        self.return_connection();
        Poll::Ready(more)
    }
}

fn poll_frame_into(
    body: &mut Incoming,
    context: &mut Context<'_>,
    into: &mut Vec<u8>,
) -> Poll<Result<bool, ()>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(context)) {
            None => return Poll::Ready(Ok(false)),
            Some(Err(_)) => return Poll::Ready(Err(())),
            Some(Ok(frame)) => {
                // Trailers are ignored.
                if let Ok(piece) = frame.into_data() {
                    into.extend_from_slice(&piece);
                    return Poll::Ready(Ok(true));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_two_equal_headers_counts_and_the_kind_is_told_without_its_parameters() {
        let head = |rows: &[(&'static str, &'static str)]| {
            let headers = rows.iter().map(|(name, value)| (*name, value.as_bytes()));
            ResponseHead::new(StatusCode::OK, headers)
        };
        let found = head(&[
            ("Content-Type", "Application/JSON; charset=utf-8"),
            ("content-type", "text/event-stream"),
            ("Mcp-Session-Id", "a"),
            ("mcp-session-id", "b"),
            ("retry-after", " 7 "),
        ]);
        assert_eq!(found.kind, ResponseKind::Json);
        assert_eq!((found.session.unwrap(), found.retry_after), ("a".parse().unwrap(), Some(7)));
        assert_eq!(head(&[("content-type", "text/event-stream")]).kind, ResponseKind::Events);
        assert_eq!(head(&[("content-type", "text/html")]).kind, ResponseKind::Other);
        assert_eq!(head(&[]).kind, ResponseKind::Other);
    }
}
