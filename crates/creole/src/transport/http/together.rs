//! Responses that go out together. A client that waits on another core is woken by what is sent to it, which costs
//! more than the sending. So while other requests are answered as well, a response lets those go on first that can:
//! then all that is ready goes out at once, and a client, or what stands before many, is woken once for all of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::task::yield_now;

/// How many requests are being answered.
#[derive(Debug, Default)]
pub(super) struct Together(AtomicUsize);

impl Together {
    /// One more, until what is given back is dropped.
    pub(super) fn join(&self) -> Among<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Among(self)
    }
}

/// One of those that are being answered.
pub(super) struct Among<'a>(&'a Together);

impl Among<'_> {
    /// Lets the others go on as far as they can, if there are any.
    pub(super) async fn let_others(&self) {
        if self.0.0.load(Ordering::Relaxed) > 1 {
            yield_now().await;
        }
    }
}

impl Drop for Among<'_> {
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
        let together = Arc::new(Together::default());
        let _others: Vec<_> = (0..others).map(|_| together.join()).collect();
        let ran = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&ran);
        let other = tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
        together.join().let_others().await;
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
