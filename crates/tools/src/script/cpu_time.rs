//! The CPU time limit of a script. CPU time is measured, so that a busy machine does not end scripts early.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Counts down while a script computes.
pub(super) struct CpuTimeLimit {
    /// The remaining time between two steps.
    remaining: Cell<Duration>,
    /// The end of the running step, in CPU time of the thread.
    end: Cell<Duration>,
    is_exhausted: Cell<bool>,
    cancelled: Arc<AtomicBool>,
}

impl CpuTimeLimit {
    pub(super) fn new(budget: Duration, cancelled: Arc<AtomicBool>) -> Self {
        let nothing = Cell::new(Duration::ZERO);
        Self {
            remaining: Cell::new(budget),
            end: nothing,
            is_exhausted: Cell::new(false),
            cancelled,
        }
    }

    /// Restarts with this budget.
    pub(super) fn reset(&self, budget: Duration) {
        self.remaining.set(budget);
    }

    /// Measures the time of `work`.
    pub(super) fn measure<T>(&self, work: impl FnOnce() -> T) -> T {
        self.end.set(thread_cpu_time() + self.remaining.get());
        let done = work();
        self.remaining.set(self.end.get().saturating_sub(thread_cpu_time()));
        done
    }

    /// Whether the script must end now.
    pub(super) fn must_stop(&self) -> bool {
        if thread_cpu_time() >= self.end.get() {
            self.is_exhausted.set(true);
        }
        self.is_exhausted.get() || self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the script was ended because of the limit.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted.get()
    }
}

/// The CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) = (time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs());
    Duration::from_secs(seconds) + Duration::from_nanos(nanos)
}
