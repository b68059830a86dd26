//! Responses that go out together. A client that waits on another core is woken by what is sent to it, which costs
//! more than the sending. So while other requests are answered as well, a response lets those go on first that can:
//! then all that is ready goes out at once, and a client, or what stands before many, is woken once for all of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::yield_now;

/// How many requests are being answered.
#[derive(Debug, Default)]
pub(crate) struct InFlightCounter(AtomicUsize);

impl InFlightCounter {
    /// One more, until what is given back is dropped.
    pub(crate) fn enter(&self) -> InFlightGuard<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(self)
    }
}

/// One of those that are being answered.
pub(crate) struct InFlightGuard<'a>(&'a InFlightCounter);

impl InFlightGuard<'_> {
    /// Lets the others go on as far as they can, if there are any.
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

    /// Whether a task that is ready has its turn before a response that has all it needs.
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
    async fn a_response_waits_for_those_that_are_ready_but_not_where_it_is_alone() {
        assert!(!lets(0).await);
        assert!(lets(1).await);
    }
}
