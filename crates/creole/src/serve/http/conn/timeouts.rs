//! The timeouts of one connection: the timestamps of its phases and the check against the limits.

use crate::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use http::Version;
use tokio::time::Instant;

use crate::serve::http::web::limits::HttpLimits;

/// The phase of one connection; shared by its stream, its requests and its supervisor.
#[derive(Debug)]
pub(crate) struct ConnectionTimeouts {
    limits: HttpLimits,
    timestamps: Mutex<Timestamps>,
    /// Whether written bytes are not flushed yet.
    has_unflushed: AtomicBool,
    /// Whether nothing of the last request's response is written and its client supports interim responses.
    interim_allowed: AtomicBool,
    /// Whether the client has closed its sending side.
    client_half_closed: AtomicBool,
}

#[derive(Debug)]
struct Timestamps {
    /// Requests whose response is not complete.
    in_flight: usize,
    /// Whether any request was completed.
    was_used: bool,
    /// Since when there is no request.
    idle_since: Instant,
    /// Since when a head is being received.
    head_since: Option<Instant>,
    /// Since when the client reads nothing.
    blocked_since: Option<Instant>,
}

/// The timeout that expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpiredTimeout {
    /// A head, or the first bytes of a new connection.
    Head,
    /// The client reads nothing of the response.
    Writer,
    /// There was no request.
    Idle,
}

impl ConnectionTimeouts {
    pub(crate) fn new(limits: HttpLimits) -> Arc<Self> {
        let marks = Timestamps {
            in_flight: 0,
            was_used: false,
            idle_since: Instant::now(),
            head_since: None,
            blocked_since: None,
        };
        Arc::new(Self {
            limits,
            timestamps: Mutex::new(marks),
            has_unflushed: AtomicBool::new(false),
            interim_allowed: AtomicBool::new(false),
            client_half_closed: AtomicBool::new(false),
        })
    }

    /// Restarts the timeouts: an earlier phase, such as a TLS handshake, has its own.
    pub(crate) fn restart(&self) {
        self.timestamps().idle_since = Instant::now();
    }

    /// Starts a request; it ends when the guard is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>, version: Version) -> RequestGuard {
        self.interim_allowed.store(version == Version::HTTP_11, Ordering::Release);
        let mut marks = self.timestamps();
        marks.in_flight += 1;
        marks.was_used = true;
        RequestGuard(Arc::clone(self))
    }

    /// Whether there is no request.
    pub(crate) fn is_idle(&self) -> bool {
        self.timestamps().in_flight == 0
    }

    /// A head begins or is complete.
    pub(crate) fn set_in_head(&self, inside: bool) {
        self.timestamps().head_since = inside.then(Instant::now);
    }

    /// The client stops reading, or reads again.
    pub(crate) fn set_blocked(&self, blocked: bool) {
        self.timestamps().blocked_since = blocked.then(Instant::now);
    }

    /// Bytes were written, or everything is flushed.
    pub(crate) fn set_unflushed(&self, unwritten: bool) {
        self.has_unflushed.store(unwritten, Ordering::Release);
        if unwritten {
            self.interim_allowed.store(false, Ordering::Release);
        }
    }

    /// Whether an interim response may be written now: nothing of the response is written, and everything before it is
    /// flushed.
    pub(crate) fn can_send_interim(&self) -> bool {
        self.interim_allowed.load(Ordering::Acquire) && self.is_flushed()
    }

    /// The client has closed its sending side.
    pub(crate) fn set_half_closed(&self) {
        self.client_half_closed.store(true, Ordering::Release);
    }

    /// Whether the client has closed its sending side.
    pub(crate) fn is_half_closed(&self) -> bool {
        self.client_half_closed.load(Ordering::Acquire)
    }

    /// Whether everything was flushed. hyper flushes its stream only when it has nothing left to write to it.
    pub(crate) fn is_flushed(&self) -> bool {
        !self.has_unflushed.load(Ordering::Acquire)
    }

    /// When the write timeout of a client that reads nothing expires.
    pub(crate) fn writer_deadline(&self) -> Option<Instant> {
        self.timestamps().blocked_since.map(|since| since + self.limits.write_timeout)
    }

    /// The expired timeout, or when to check again.
    pub(crate) fn check(&self, now: Instant) -> Result<Instant, ExpiredTimeout> {
        let limits = &self.limits;
        let marks = self.timestamps();
        let writer =
            marks.blocked_since.map(|since| (since + limits.write_timeout, ExpiredTimeout::Writer));
        let reader = (marks.in_flight == 0).then(|| match (marks.head_since, marks.was_used) {
            (Some(since), _) => {
                (since.max(marks.idle_since) + limits.header_timeout, ExpiredTimeout::Head)
            }
            (None, false) => (marks.idle_since + limits.header_timeout, ExpiredTimeout::Head),
            (None, true) => (marks.idle_since + limits.idle_timeout, ExpiredTimeout::Idle),
        });
        let next = [writer, reader].into_iter().flatten().min_by_key(|(deadline, _)| *deadline);
        match next {
            Some((deadline, overdue)) if deadline <= now => Err(overdue),
            Some((deadline, _)) => Ok(deadline.min(now + self.shortest_timeout())),
            None => Ok(now + self.shortest_timeout()),
        }
    }

    /// A phase that begins after a check cannot expire before this time has passed, so checks at this interval notice
    /// every expiry on time.
    fn shortest_timeout(&self) -> std::time::Duration {
        let HttpLimits { header_timeout, idle_timeout, write_timeout, .. } = self.limits;
        header_timeout.min(idle_timeout).min(write_timeout)
    }

    fn timestamps(&self) -> MutexGuard<'_, Timestamps> {
        // Every change is one assignment, so a panic leaves no partial change.
        self.timestamps.lock()
    }
}

/// A request whose response is not complete.
#[derive(Debug)]
pub(crate) struct RequestGuard(Arc<ConnectionTimeouts>);

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let mut marks = self.0.timestamps();
        marks.in_flight -= 1;
        if marks.in_flight == 0 {
            marks.idle_since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn after(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_must_send_soon_and_a_used_one_may_be_idle_longer() {
        let timeouts = ConnectionTimeouts::new(HttpLimits::default());
        let start = Instant::now();
        assert_eq!(timeouts.check(start), Ok(start + after(10)));
        assert_eq!(timeouts.check(start + after(10)), Err(ExpiredTimeout::Head));
        drop(timeouts.begin_request(Version::HTTP_11));
        assert!(timeouts.check(start + after(59)).is_ok());
        assert_eq!(timeouts.check(start + after(60)), Err(ExpiredTimeout::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_overdue_ten_seconds_after_its_first_byte() {
        let timeouts = ConnectionTimeouts::new(HttpLimits::default());
        drop(timeouts.begin_request(Version::HTTP_11));
        tokio::time::advance(after(50)).await;
        timeouts.set_in_head(true);
        let now = Instant::now();
        assert_eq!(timeouts.check(now + after(9)), Ok(now + after(10)));
        assert_eq!(timeouts.check(now + after(10)), Err(ExpiredTimeout::Head));
        let request = timeouts.begin_request(Version::HTTP_11);
        assert!(
            timeouts.check(now + after(1000)).is_ok(),
            "the header timeout does not apply during a response"
        );
        timeouts.set_in_head(false);
        drop(request);
        assert!(timeouts.check(now + after(59)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_times_out_also_during_a_request() {
        let timeouts = ConnectionTimeouts::new(HttpLimits::default());
        let request = timeouts.begin_request(Version::HTTP_11);
        timeouts.set_blocked(true);
        let now = Instant::now();
        assert!(timeouts.check(now + after(29)).is_ok());
        assert_eq!(timeouts.check(now + after(30)), Err(ExpiredTimeout::Writer));
        timeouts.set_blocked(false);
        assert!(timeouts.check(now + after(30)).is_ok());
        assert!(!timeouts.is_idle());
        drop(request);
        assert!(timeouts.is_idle());
    }
}
