//! The body of a server's response, which returns its connection once it is read.

use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll, ready};

use http_body::Body as _;
use hyper::body::Incoming;

use crate::client::transport::http::conn::http1::Http1Connection;
use crate::client::transport::http::conn::idle_connections::IdleConnections;

/// The body of a response. When it is read to its end, it returns its connection; when it is dropped before, it closes
/// it.
pub(crate) enum ResponseBody {
    /// An HTTP/1 body, which owns its connection while it is read.
    Http1(Option<Box<Http1Connection>>, Weak<IdleConnections>),
    /// One of several bodies on an HTTP/2 connection.
    Http2(Incoming),
}

impl ResponseBody {
    /// The body of a response whose head was read.
    pub(crate) fn http1(connection: Box<Http1Connection>, idle: Weak<IdleConnections>) -> Self {
        let mut body = Self::Http1(Some(connection), idle);
        body.return_connection();
        body
    }

    /// Returns the connection if another request may follow on it.
    fn return_connection(&mut self) {
        if let Self::Http1(lent, idle) = self
            && let Some(connection) = lent.take_if(|connection| connection.is_free())
            && let Some(idle) = idle.upgrade()
        {
            idle.put_back(connection);
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
        buffer: &mut Vec<u8>,
    ) -> Poll<Result<bool, ()>> {
        let more = match self {
            Self::Http1(None, _) => Ok(false),
            Self::Http1(Some(connection), _) => {
                ready!(connection.poll_append(context, buffer)).map_err(drop)
            }
            Self::Http2(body) => ready!(poll_frame_into(body, context, buffer)),
        };
        self.return_connection();
        Poll::Ready(more)
    }
}

fn poll_frame_into(
    body: &mut Incoming,
    context: &mut Context<'_>,
    buffer: &mut Vec<u8>,
) -> Poll<Result<bool, ()>> {
    loop {
        match ready!(Pin::new(&mut *body).poll_frame(context)) {
            None => return Poll::Ready(Ok(false)),
            Some(Err(_)) => return Poll::Ready(Err(())),
            Some(Ok(frame)) => {
                // Trailers are ignored.
                if let Ok(piece) = frame.into_data() {
                    buffer.extend_from_slice(&piece);
                    return Poll::Ready(Ok(true));
                }
            }
        }
    }
}
