//! How much and how long: every wait and every size of a connection.

use std::time::Duration;

use crate::budget;

/// How much and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// How many connections are open at once; further ones wait to be accepted.
    pub connections: usize,
    /// How many of them one address may have; further ones are closed. Of IPv6 a network of 64 bits counts. The address of
    /// this machine and those of trusted proxies may have all.
    pub connections_per_address: usize,
    /// How long a request's head may take, and a TLS handshake, and a new connection to say anything.
    pub header_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is written to it.
    pub write_timeout: Duration,
    /// How long calls may go on when the server is asked to end.
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

/// The longest head of a request, in bytes: beyond it 431.
pub(crate) const MAX_HEAD_BYTES: usize = 32 * 1024;
/// What a reader of HTTP/1 has room for beyond a head.
pub(crate) const SPARE: usize = 8 * 1024;
/// The most headers of a request: beyond it 431. The reader of HTTP/1 has the same limit built in.
pub(crate) const MAX_HEADERS: usize = 100;
/// The longest target of a request, in bytes: beyond it 414.
pub(crate) const MAX_TARGET_BYTES: usize = 8 * 1024;
/// How many requests of one HTTP/2 connection run at once.
pub(crate) const MAX_STREAMS: u32 = 100;
/// How many HTTP/2 requests a client may take back before they are looked at.
pub(crate) const MAX_PENDING_RESETS: usize = 20;
/// How many HTTP/2 requests may be refused for faults before the connection is given up.
pub(crate) const MAX_LOCAL_RESETS: usize = 128;
/// What one HTTP/2 request may send ahead of being read.
pub(crate) const STREAM_WINDOW: u32 = 128 * 1024;
/// What all HTTP/2 requests of a connection may send ahead of being read.
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What waits to be written for one HTTP/2 request.
pub(crate) const SEND_BUFFER: usize = 64 * 1024;
/// The largest piece of a body that is handed to HTTP/2 at once: what is handed over cannot be taken back.
pub(crate) const MAX_PIECE_BYTES: usize = 16 * 1024;
/// How often an HTTP/2 client is asked whether it is still there, and how long it may take to say so.
pub(crate) const PING_INTERVAL: Duration = Duration::from_secs(20);
/// How often a client of HTTP/1 that says nothing is asked, by the system, whether its machine is still there.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// How long an idle connection still takes a request after the server was asked to end.
pub(crate) const IDLE_DRAIN: Duration = Duration::from_millis(500);
/// How long a resting connection may take to end once it was told to.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the rest of a refused request is read and forgotten, so that its answer arrives.
pub(crate) const LINGER: Duration = Duration::from_secs(2);
/// How much of a refused request is read and forgotten: more than the longest body, unless the configuration allows
/// longer ones. A client that sends all of its body before it reads then gets the refusal, and no broken connection.
pub(crate) const LINGER_BYTES: usize = 2 * 1024 * 1024;
/// How much is read and forgotten that a client sends while a response lasts.
pub(crate) const STREAMING_DISCARD_BYTES: usize = 512 * 1024;
/// How many connections wait to be accepted. The system drops those beyond it, and their clients wait a second or see a
/// broken connection.
pub(crate) const ACCEPT_QUEUE: u32 = 1024;
/// How long the listener waits when the system has no more file descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::http::mcp::stateless_exchange::KEEP_ALIVE;

    #[test]
    fn a_client_that_vanished_is_noticed_within_the_budget() {
        let budget = Duration::from_secs(45);
        // Of the first sign that nobody acknowledges, or of questions that nobody answers.
        assert!(KEEP_ALIVE + HttpLimits::default().write_timeout <= budget);
        assert!(PING_INTERVAL * 2 <= budget);
        assert!(PROBE_INTERVAL < HttpLimits::default().write_timeout);
    }
}
