//! The concurrency layer: bounds the number of calls that run at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::operation::{Operation, Outcome};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The settings of the concurrency layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencySettings {
    /// The maximum number of running calls.
    pub calls: usize,
    /// The maximum number of queued calls.
    pub queue: usize,
    /// How long a call waits before it is refused.
    pub wait: Duration,
}

/// A layer that bounds the number of running calls. Further ones wait in order of arrival.
#[derive(Debug)]
pub struct Concurrency {
    settings: ConcurrencySettings,
    /// Grants permits in order of arrival.
    permits: Semaphore,
    waiting: AtomicUsize,
}

impl Concurrency {
    /// A layer with these settings.
    pub fn new(settings: ConcurrencySettings) -> Self {
        let permits = Semaphore::new(settings.calls.min(Semaphore::MAX_PERMITS));
        Self { settings, permits, waiting: AtomicUsize::new(0) }
    }

    async fn acquire(&self) -> Result<SemaphorePermit<'_>, Fault> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Ok(permit);
        }
        let ConcurrencySettings { calls, queue, wait } = self.settings;
        let busy = |detail| Fault::new(FaultKind::Busy, detail);
        let Some(_queue_guard) = QueuePlace::enter(&self.waiting, queue) else {
            return Err(busy(format!(
                "concurrency limit reached: {calls} calls are running and \
                {queue} are queued; try again later"
            )));
        };
        match tokio::time::timeout(wait, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => Err(busy(format!(
                "concurrency limit reached: no running call ended within {} s; \
                try again later",
                wait.as_secs()
            ))),
        }
    }
}

/// A place in the queue. Released on drop, also by a cancelled call.
struct QueuePlace<'a>(&'a AtomicUsize);

impl<'a> QueuePlace<'a> {
    fn enter(waiting: &'a AtomicUsize, max: usize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::AcqRel) < max).then_some(place)
    }
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Middleware for Concurrency {
    fn kind(&self) -> &'static str {
        "concurrency"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        // A request for a task's result does no work and must not block the task's own call.
        if matches!(call.operation, Operation::TaskResult { .. }) {
            return next.call(call);
        }
        Box::pin(async move {
            match self.acquire().await {
                Ok(_permit) => next.call(call).await,
                Err(fault) => fault.with_subject(call.operation.target()).into(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::testing::{call, fault, slow_service, text};

    fn one_at_once(queue: usize, wait: u64) -> Concurrency {
        let wait = Duration::from_secs(wait);
        Concurrency::new(ConcurrencySettings { calls: 1, queue, wait })
    }

    #[tokio::test(start_paused = true)]
    async fn calls_wait_for_each_other_and_those_that_find_the_queue_full_are_refused() {
        let service = slow_service(one_at_once(1, 60));
        let started = tokio::time::Instant::now();
        let wait = || call(&service, "a", "wait", r#"{"seconds":10}"#);
        let (first, second, third) = tokio::join!(wait(), wait(), wait());
        assert_eq!((text(&first), text(&second)), ("waited", "waited"));
        assert_eq!(
            fault(third).detail,
            "concurrency limit reached: 1 calls are running and 1 are queued; try again later"
        );
        assert_eq!(started.elapsed().as_secs(), 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_waiter_that_times_out_or_leaves_is_removed_from_the_queue() {
        let service = slow_service(one_at_once(1, 5));
        let wait = || call(&service, "a", "wait", r#"{"seconds":10}"#);
        let (first, second) = tokio::join!(wait(), wait());
        assert_eq!(text(&first), "waited");
        assert_eq!(
            fault(second).detail,
            "concurrency limit reached: no running call ended within 5 s; try again later"
        );
        let gone =
            tokio::time::timeout(Duration::from_secs(1), async { tokio::join!(wait(), wait()) });
        assert!(gone.await.is_err());
        assert_eq!(text(&wait().await), "waited");
    }
}
