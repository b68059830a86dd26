//! How long a script has computed: time of the processor, so that a busy machine ends nobody early.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Counts down while a script computes.
pub(super) struct Meter {
    /// What is left between two steps.
    left: Cell<Duration>,
    /// When the step that runs has used it up, in the thread's own time.
    end: Cell<Duration>,
    is_spent: Cell<bool>,
    cancelled: Arc<AtomicBool>,
}

impl Meter {
    pub(super) fn new(budget: Duration, cancelled: Arc<AtomicBool>) -> Self {
        let nothing = Cell::new(Duration::ZERO);
        Self { left: Cell::new(budget), end: nothing, is_spent: Cell::new(false), cancelled }
    }

    /// Begins anew with this much.
    pub(super) fn renew(&self, budget: Duration) {
        self.left.set(budget);
    }

    /// Counts while the work is done.
    pub(super) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.end.set(now() + self.left.get());
        let done = work();
        self.left.set(self.end.get().saturating_sub(now()));
        done
    }

    /// Whether the script has to end now.
    pub(super) fn is_over(&self) -> bool {
        if now() >= self.end.get() {
            self.is_spent.set(true);
        }
        self.is_spent.get() || self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether it was ended because it took too long.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent.get()
    }
}

/// The time that this thread has computed.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}
