//! Where one connection is, and since when: what its limits of time are measured by.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Version;
use tokio::time::Instant;

use super::limits::Limits;

/// Where one connection is; shared by its stream, its requests and the task that watches over it.
#[derive(Debug)]
pub(super) struct Pace {
    limits: Limits,
    marks: Mutex<Marks>,
    /// Whether something was written that is not flushed.
    unwritten: AtomicBool,
    /// Whether nothing of the answer to the last request was written, and its client knows interim answers.
    unanswered: AtomicBool,
    /// Whether the client has closed its side.
    half_closed: AtomicBool,
}

#[derive(Debug)]
struct Marks {
    /// Requests whose answer is not complete.
    in_flight: usize,
    /// Whether any request was complete.
    served: bool,
    /// Since when there is no request.
    quiet: Instant,
    /// Since when a head is on its way.
    head: Option<Instant>,
    /// Since when the client takes nothing.
    blocked: Option<Instant>,
}

/// What took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// A head, or what a new connection should say.
    Head,
    /// The client takes nothing of what is written.
    Writer,
    /// Nothing was asked for.
    Idle,
}

impl Pace {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let marks =
            Marks { in_flight: 0, served: false, quiet: Instant::now(), head: None, blocked: None };
        Arc::new(Self {
            limits,
            marks: Mutex::new(marks),
            unwritten: AtomicBool::new(false),
            unanswered: AtomicBool::new(false),
            half_closed: AtomicBool::new(false),
        })
    }

    /// Time begins anew: what came before, such as a handshake, had its own.
    pub(super) fn restart(&self) {
        self.marks().quiet = Instant::now();
    }

    /// A request begins; it lasts until what is given back is dropped.
    pub(super) fn begin(self: &Arc<Self>, version: Version) -> InFlight {
        self.unanswered.store(version == Version::HTTP_11, Ordering::Release);
        let mut marks = self.marks();
        marks.in_flight += 1;
        marks.served = true;
        InFlight(Arc::clone(self))
    }

    /// Whether there is no request.
    pub(super) fn is_idle(&self) -> bool {
        self.marks().in_flight == 0
    }

    /// A head begins or is complete.
    pub(super) fn head(&self, inside: bool) {
        self.marks().head = inside.then(Instant::now);
    }

    /// The client takes nothing, or takes something again.
    pub(super) fn blocked(&self, blocked: bool) {
        self.marks().blocked = blocked.then(Instant::now);
    }

    /// Something is written, or everything is flushed.
    pub(super) fn unwritten(&self, unwritten: bool) {
        self.unwritten.store(unwritten, Ordering::Release);
        if unwritten {
            self.unanswered.store(false, Ordering::Release);
        }
    }

    /// Whether an interim answer may be written now: nothing of the answer was, and all before it is flushed.
    pub(super) fn may_interject(&self) -> bool {
        self.unanswered.load(Ordering::Acquire) && self.is_flushed()
    }

    /// The client has closed its side.
    pub(super) fn half_closed(&self) {
        self.half_closed.store(true, Ordering::Release);
    }

    /// Whether the client has closed its side.
    pub(super) fn is_half_closed(&self) -> bool {
        self.half_closed.load(Ordering::Acquire)
    }

    /// Whether everything was flushed. hyper flushes its stream only when it has nothing left to write to it.
    pub(super) fn is_flushed(&self) -> bool {
        !self.unwritten.load(Ordering::Acquire)
    }

    /// When a client that takes nothing has done so for too long.
    pub(super) fn writer_deadline(&self) -> Option<Instant> {
        self.marks().blocked.map(|since| since + self.limits.write_timeout)
    }

    /// What is overdue, or when to ask again.
    pub(super) fn check(&self, now: Instant) -> Result<Instant, Overdue> {
        let limits = &self.limits;
        let marks = self.marks();
        let writer = marks.blocked.map(|since| (since + limits.write_timeout, Overdue::Writer));
        let reader = (marks.in_flight == 0).then(|| match (marks.head, marks.served) {
            (Some(since), _) => (since.max(marks.quiet) + limits.header_timeout, Overdue::Head),
            (None, false) => (marks.quiet + limits.header_timeout, Overdue::Head),
            (None, true) => (marks.quiet + limits.idle_timeout, Overdue::Idle),
        });
        let next = [writer, reader].into_iter().flatten().min_by_key(|(deadline, _)| *deadline);
        match next {
            Some((deadline, overdue)) if deadline <= now => Err(overdue),
            Some((deadline, _)) => Ok(deadline.min(now + self.shortest())),
            None => Ok(now + self.shortest()),
        }
    }

    /// Whatever begins after a check is not overdue before that much time has passed, so checks this far
    /// apart notice everything on time.
    fn shortest(&self) -> std::time::Duration {
        let Limits { header_timeout, idle_timeout, write_timeout, .. } = self.limits;
        header_timeout.min(idle_timeout).min(write_timeout)
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        // Every change is one assignment, so a panic leaves nothing half-done.
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request whose answer is not complete.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Pace>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let mut marks = self.0.marks();
        marks.in_flight -= 1;
        if marks.in_flight == 0 {
            marks.quiet = Instant::now();
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
    async fn a_new_connection_has_to_speak_and_a_used_one_may_rest_longer() {
        let pace = Pace::new(Limits::default());
        let start = Instant::now();
        assert_eq!(pace.check(start), Ok(start + after(10)));
        assert_eq!(pace.check(start + after(10)), Err(Overdue::Head));
        drop(pace.begin(Version::HTTP_11));
        assert!(pace.check(start + after(59)).is_ok());
        assert_eq!(pace.check(start + after(60)), Err(Overdue::Idle));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_is_overdue_ten_seconds_after_its_first_byte() {
        let pace = Pace::new(Limits::default());
        drop(pace.begin(Version::HTTP_11));
        tokio::time::advance(after(50)).await;
        pace.head(true);
        let now = Instant::now();
        assert_eq!(pace.check(now + after(9)), Ok(now + after(10)));
        assert_eq!(pace.check(now + after(10)), Err(Overdue::Head));
        let request = pace.begin(Version::HTTP_11);
        assert!(pace.check(now + after(1000)).is_ok(), "an answer that streams is no slow head");
        pace.head(false);
        drop(request);
        assert!(pace.check(now + after(59)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_overdue_also_during_a_request() {
        let pace = Pace::new(Limits::default());
        let request = pace.begin(Version::HTTP_11);
        pace.blocked(true);
        let now = Instant::now();
        assert!(pace.check(now + after(29)).is_ok());
        assert_eq!(pace.check(now + after(30)), Err(Overdue::Writer));
        pace.blocked(false);
        assert!(pace.check(now + after(30)).is_ok());
        assert!(!pace.is_idle());
        drop(request);
        assert!(pace.is_idle());
    }
}
