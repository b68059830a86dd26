//! Verifies passwords on dedicated threads, few at a time, with a short queue.
//!
//! A verification is slow by design and takes 19 MiB. If each request could start one, some hundred requests would
//! block everything else.

use std::sync::Arc;
use std::thread::available_parallelism;

use tokio::sync::Semaphore;

/// Maximum number of waiting verifications; at 20 ms each, none waits for much longer than a second.
const MAX_QUEUED_CHECKS: usize = 64;

/// Limits the running and waiting verifications.
#[derive(Debug)]
pub(crate) struct PasswordPool {
    /// One permit for each verification that runs or waits.
    queue_slots: Arc<Semaphore>,
    /// One permit for each verification that runs.
    running: Arc<Semaphore>,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PoolBusy;

impl PasswordPool {
    /// Half of the processors verify passwords, the others serve requests.
    pub(crate) fn with_defaults() -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        Self::new((cores / 2).max(1), MAX_QUEUED_CHECKS)
    }

    pub(crate) fn new(at_once: usize, queue: usize) -> Self {
        let (permits, running) = (Semaphore::new(at_once + queue), Semaphore::new(at_once));
        Self { queue_slots: Arc::new(permits), running: Arc::new(running) }
    }

    /// Runs a verification. It continues after the caller has disconnected, and keeps its permit until it is done.
    pub(crate) async fn run(
        &self,
        check: impl FnOnce() -> bool + Send + 'static,
    ) -> Result<bool, PoolBusy> {
        let place = Arc::clone(&self.queue_slots).try_acquire_owned().map_err(|_| PoolBusy)?;
        let permit = Arc::clone(&self.running).acquire_owned().await.map_err(|_| PoolBusy)?;
        let checked = tokio::task::spawn_blocking(move || {
            let _held = (place, permit);
            check()
        });
        // A verification that panicked, or that a stopping runtime refused, has not succeeded.
        Ok(checked.await.unwrap_or(false))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn when_the_queue_is_full_the_check_fails_at_once() {
        let pool = Arc::new(PasswordPool::new(1, 1));
        let (release, gate) = mpsc::channel::<()>();
        let slow = {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { pool.run(move || gate.recv().is_ok()).await })
        };
        let waiting = {
            let pool = Arc::clone(&pool);
            tokio::spawn(async move { pool.run(|| true).await })
        };
        while pool.queue_slots.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.run(|| true).await, Err(PoolBusy));
        release.send(()).unwrap();
        assert_eq!((slow.await.unwrap(), waiting.await.unwrap()), (Ok(true), Ok(true)));
        assert_eq!(pool.run(|| false).await, Ok(false));
        assert_eq!(pool.queue_slots.available_permits(), 2);
    }

    #[tokio::test]
    async fn a_check_that_panics_authenticates_no_caller_and_frees_its_slot() {
        let pool = PasswordPool::new(1, 0);
        assert_eq!(pool.run(|| panic!("broken")).await, Ok(false));
        assert_eq!(pool.run(|| true).await, Ok(true));
    }
}
