//! Limits on the timeouts, counts and sizes of connections.

use std::time::Duration;

use crate::budget;

/// Limits that a server can configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpLimits {
    /// Maximum number of open connections; further ones wait to be accepted.
    pub connections: usize,
    /// Maximum number of connections per address; further ones are closed. For IPv6 a /64 network counts as one
    /// address. This machine's address and those of trusted proxies are exempt.
    pub connections_per_address: usize,
    /// Timeout for a request's head, for a TLS handshake, and for the first byte of a new connection.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long a client may read nothing of what is written to it.
    pub write_timeout: Duration,
    /// How long calls may continue during a shutdown.
    pub drain_timeout: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        let connections = budget::max_connections();
        Self {
            connections,
            connections_per_address: connections.div_ceil(2),
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// Maximum length of a request's head in bytes; beyond it 431.
pub(crate) const MAX_HEAD_BYTES: usize = 32 * 1024;
/// Buffer space of an HTTP/1 parser beyond a head.
pub(crate) const SPARE: usize = 8 * 1024;
/// Maximum number of headers of a request; beyond it 431. hyper's HTTP/1 parser has the same limit built in.
pub(crate) const MAX_HEADERS: usize = 100;
/// Maximum length of a request's target in bytes; beyond it 414.
pub(crate) const MAX_TARGET_BYTES: usize = 8 * 1024;
/// Maximum number of concurrent requests on one HTTP/2 connection.
pub(crate) const MAX_STREAMS: u32 = 100;
/// How many HTTP/2 requests a client may reset before they are accepted.
pub(crate) const MAX_PENDING_RESETS: usize = 20;
/// How many HTTP/2 requests may be reset for errors before the connection is closed.
pub(crate) const MAX_LOCAL_RESETS: usize = 128;
/// How many unread bytes one HTTP/2 request may send.
pub(crate) const STREAM_WINDOW: u32 = 128 * 1024;
/// How many unread bytes all HTTP/2 requests of a connection may send.
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// How many bytes may be buffered for writing per HTTP/2 request.
pub(crate) const SEND_BUFFER: usize = 64 * 1024;
/// The largest piece of a body that is handed to HTTP/2 at once: it cannot be taken back.
pub(crate) const MAX_PIECE_BYTES: usize = 16 * 1024;
/// The interval of HTTP/2 pings, and the timeout for their responses.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How long a stream is silent before a keep-alive comment, and a connection before a TCP keep-alive probe.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The interval of TCP keep-alive probes to a silent HTTP/1 client.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// How long an idle connection still accepts a request after the shutdown began.
pub(crate) const IDLE_DRAIN: Duration = Duration::from_millis(500);
/// The timeout for an idle connection to close after it was requested.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the rest of a rejected request is read and discarded, so that its response arrives.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// How many bytes of a rejected request are read and discarded: more than the longest body, unless the configuration
/// allows longer ones. A client that sends its whole body before it reads then gets the response and not a broken
/// connection.
pub(crate) const LINGER_BYTES: usize = 2 * 1024 * 1024;
/// How many bytes of input are discarded during a streaming response.
pub(crate) const STREAMING_DISCARD_BYTES: usize = 512 * 1024;
/// Length of the accept queue. The system drops connections beyond it, and their clients wait a second or see a broken
/// connection.
pub(crate) const ACCEPT_QUEUE: u32 = 1024;
/// How long the listener waits when the system has no more file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_vanished_is_noticed_within_the_budget() {
        let budget = Duration::from_secs(45);
        // Covers unacknowledged data and unanswered probes.
        assert!(KEEP_ALIVE + HttpLimits::default().write_timeout <= budget);
        assert!(PING_INTERVAL * 2 <= budget);
        assert!(PROBE_INTERVAL < HttpLimits::default().write_timeout);
    }
}
