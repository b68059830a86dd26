//! One piece of work for all callers that want its result at the same time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::auth::Digest;
use crate::sync::Mutex;

/// The pieces of work that run.
#[derive(Debug)]
pub(super) struct SingleFlight<T> {
    running: Mutex<HashMap<Digest, Arc<OnceCell<T>>>>,
}

impl<T: Clone> SingleFlight<T> {
    pub(super) fn new() -> Self {
        Self { running: Mutex::default() }
    }

    /// Does the work, or waits for the result of the caller that does it. If that caller gives up, the next one continues.
    pub(super) async fn run<F: Future<Output = T>>(
        &self,
        key: Digest,
        work: impl FnOnce() -> F,
    ) -> T {
        let cell = Arc::clone(self.running.lock().entry(key).or_default());
        let place = FlightMember { flight: self, key, cell };
        place.cell.get_or_init(work).await.clone()
    }
}

/// One caller that waits.
struct FlightMember<'a, T> {
    flight: &'a SingleFlight<T>,
    key: Digest,
    cell: Arc<OnceCell<T>>,
}

impl<T> Drop for FlightMember<'_, T> {
    /// Removes work that is done, or that nobody else waits for.
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
        while flight.running.lock().get(&[1; 32]).map_or(0, Arc::strong_count) < 11 {
            tokio::task::yield_now().await;
        }
        gate.notify_one();
        for each in all {
            assert_eq!(each.await.unwrap(), 7);
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
        assert!(flight.running.lock().is_empty());
    }
}
