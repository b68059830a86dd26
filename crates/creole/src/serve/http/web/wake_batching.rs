//! Batches client wake-ups. Bytes that arrive wake a client on another core, which costs more than the write. So a
//! response yields once if other requests are in flight: then all ready responses are written in one pass, and a
//! client, or a proxy in front of many, is woken once for all of them.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::yield_now;

/// The number of requests in flight.
#[derive(Debug, Default)]
pub(crate) struct InFlightCounter(AtomicUsize);

impl InFlightCounter {
    /// Counts one more until the guard is dropped.
    pub(crate) fn enter(&self) -> InFlightGuard<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self)
    }
}

/// One request in flight.
pub(crate) struct InFlightGuard<'a>(&'a InFlightCounter);

impl InFlightGuard<'_> {
    /// Yields to the other requests, if there are any.
    pub(crate) async fn yield_to_others(&self) {
        if self.0.0.load(Ordering::Relaxed) > 1 {
            yield_now().await;
        }
    }
}

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Whether a ready task runs before a response that is complete.
    async fn lets(others: usize) -> bool {
        let together = Arc::new(InFlightCounter::default());
        let _others: Vec<_> = (0..others).map(|_| together.enter()).collect();
        let ran = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&ran);
        let other = tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
        together.enter().yield_to_others().await;
        let ran = ran.load(Ordering::Relaxed);
        other.await.unwrap();
        ran
    }

    #[tokio::test]
    async fn a_response_waits_for_other_ready_ones_but_not_alone() {
        assert!(!lets(0).await);
        assert!(lets(1).await);
    }
}
