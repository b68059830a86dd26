//! Detects the HTTP version of a connection from its first bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::serve::http::conn::screened_stream::ScreenedStream;
use crate::serve::http::conn::supervise::Drivable;

/// The connection preface of an HTTP/2 client (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpVersion {
    Http1,
    Http2,
}

/// A connection whose version is not known yet.
pub(crate) struct VersionSniffer<T> {
    wire: Option<ScreenedStream<T>>,
    read: [u8; PREFACE.len()],
    filled: usize,
    is_shutting_down: bool,
}

impl<T> VersionSniffer<T> {
    pub(crate) fn new(wire: ScreenedStream<T>) -> Self {
        Self { wire: Some(wire), read: [0; PREFACE.len()], filled: 0, is_shutting_down: false }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Drivable for VersionSniffer<T> {
    /// The version, and the stream with all bytes that were read; an error when the connection broke, `None` when it
    /// was shut down.
    type End = io::Result<Option<(HttpVersion, ScreenedStream<T>)>>;

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Self::End> {
        let Some(wire) = self.wire.as_mut().filter(|_| !self.is_shutting_down) else {
            return Poll::Ready(Ok(None));
        };
        let mut version = HttpVersion::Http2;
        while self.filled < PREFACE.len() {
            let mut rest = ReadBuf::new(&mut self.read[self.filled..]);
            ready!(Pin::new(&mut *wire).poll_read(context, &mut rest))?;
            let count = rest.filled().len();
            self.filled += count;
            if count == 0 || !PREFACE.starts_with(&self.read[..self.filled]) {
                version = HttpVersion::Http1;
                break;
            }
        }
        wire.unread(Bytes::copy_from_slice(&self.read[..self.filled]));
        Poll::Ready(Ok(self.wire.take().map(|wire| (version, wire))))
    }

    fn shut_down(&mut self) {
        self.is_shutting_down = true;
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;
    use crate::serve::http::HttpLimits;
    use crate::serve::http::conn::timeouts::ConnectionTimeouts;

    async fn opened(
        mut sniffer: VersionSniffer<DuplexStream>,
    ) -> (HttpVersion, ScreenedStream<DuplexStream>) {
        poll_fn(|context| sniffer.poll_end(context)).await.unwrap().unwrap()
    }

    #[tokio::test]
    async fn the_version_is_detected_from_the_first_bytes_which_are_read_again() {
        let other = b"PRI * HTTP/2.0\r\n\r\nno";
        for (bytes, expected) in [
            (&b"POST / HTTP/1.1\r\n"[..], HttpVersion::Http1),
            (b"PRI", HttpVersion::Http1),
            (b"", HttpVersion::Http1),
            (other, HttpVersion::Http1),
            (PREFACE, HttpVersion::Http2),
        ] {
            let (mut client, server) = duplex(1);
            let pace = ConnectionTimeouts::new(HttpLimits::default());
            let opening = VersionSniffer::new(ScreenedStream::new(server, pace));
            let reading = tokio::spawn(async move {
                let (version, mut wire) = opened(opening).await;
                let mut all = Vec::new();
                wire.read_to_end(&mut all).await.unwrap();
                (version, all)
            });
            client.write_all(bytes).await.unwrap();
            drop(client);
            let (version, all) = reading.await.unwrap();
            assert_eq!(version, expected, "{bytes:?}");
            assert_eq!(all, bytes);
        }
    }
}
