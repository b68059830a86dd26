//! One piece of work for all callers that want its result at the same time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::auth::Digest;
use crate::sync::Mutex;

/// The pieces of work that run.
#[derive(Debug)]
pub(crate) struct SingleFlight<T> {
    running: Mutex<HashMap<Digest, Arc<OnceCell<T>>>>,
}

impl<T: Clone> SingleFlight<T> {
    pub(crate) fn new() -> Self {
        Self { running: Mutex::default() }
    }

    /// Does the work, or waits for the result of the caller that does it. If that caller gives up, the next one continues.
    pub(crate) async fn run<F: Future<Output = T>>(
        &self,
        key: Digest,
        work: impl FnOnce() -> F,
    ) -> T {
        self.join(key).cell.get_or_init(work).await.clone()
    }

    fn join(&self, key: Digest) -> FlightMember<'_, T> {
        let cell = Arc::clone(self.running.lock().entry(key).or_default());
        FlightMember { flight: self, key, cell }
    }

    /// The number of callers that wait.
    #[cfg(test)]
    pub(crate) fn waiting_count(&self) -> usize {
        self.running.lock().values().map(|cell| Arc::strong_count(cell) - 1).sum()
    }
}

/// One caller that waits.
struct FlightMember<'a, T> {
    flight: &'a SingleFlight<T>,
    key: Digest,
    cell: Arc<OnceCell<T>>,
}

impl<T> Drop for FlightMember<'_, T> {
    /// Removes work that is done, or that no other caller waits for.
    fn drop(&mut self) {
        let mut running = self.flight.running.lock();
        let is_mine = running.get(&self.key).is_some_and(|it| Arc::ptr_eq(it, &self.cell));
        // Two: the table and this one.
        if is_mine && (self.cell.initialized() || Arc::strong_count(&self.cell) == 2) {
            running.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn work_is_done_once_and_nothing_is_left() {
        let (flight, count, gate) =
            (Arc::new(SingleFlight::new()), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let all: Vec<_> = (0..10)
            .map(|_| {
                let (flight, count, gate) =
                    (Arc::clone(&flight), Arc::clone(&count), Arc::clone(&gate));
                tokio::spawn(async move {
                    let work = || async {
                        count.fetch_add(1, Ordering::Relaxed);
                        gate.notified().await;
                        7
                    };
                    flight.run([1; 32], work).await
                })
            })
            .collect();
        while flight.waiting_count() < 10 {
            tokio::task::yield_now().await;
        }
        gate.notify_one();
        for each in all {
            assert_eq!(each.await.unwrap(), 7);
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert!(flight.running.lock().is_empty());
    }

    #[tokio::test]
    async fn a_caller_that_gives_up_leaves_nothing_behind() {
        let flight = SingleFlight::<u8>::new();
        let (first, second) = (flight.join([1; 32]), flight.join([1; 32]));
        assert!(Arc::ptr_eq(&first.cell, &second.cell));
        drop(first);
        assert_eq!(flight.running.lock().len(), 1, "a caller still waits");
        second.cell.get_or_init(async || 7).await;
        let late = flight.join([1; 32]);
        assert_eq!(late.cell.get(), Some(&7));
        drop(second);
        assert!(flight.running.lock().is_empty(), "work that is done is removed");
        drop(late);
        assert!(flight.join([1; 32]).cell.get().is_none());
        assert!(flight.running.lock().is_empty());
    }
}
