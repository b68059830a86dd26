//! Whether this process waits for a person to log in. Requests have shorter timeouts than people.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::output::progress;

/// The number of people who are asked now.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Announces that a person is not asked any more.
static ANSWERED: Notify = Notify::const_new();

/// A person is asked until this is dropped. No progress is shown meanwhile.
pub(crate) struct LoginWait {
    _prompt: progress::PromptGuard,
}

impl LoginWait {
    pub(crate) fn begin() -> Self {
        ASKED.fetch_add(1, Ordering::SeqCst);
        Self { _prompt: progress::PromptGuard::begin() }
    }
}

impl Drop for LoginWait {
    fn drop(&mut self) {
        ASKED.fetch_sub(1, Ordering::SeqCst);
        ANSWERED.notify_waiters();
    }
}

/// Whether a person is asked.
pub(crate) fn is_person_asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}

/// Waits until no person is asked.
pub(crate) async fn wait_for_person() {
    loop {
        let mut answered = std::pin::pin!(ANSWERED.notified());
        answered.as_mut().enable();
        if !is_person_asked() {
            return;
        }
        answered.await;
    }
}

#[cfg(test)]
mod tests {
    use super::{LoginWait, is_person_asked, wait_for_person};

    #[tokio::test]
    async fn others_wait_while_a_person_is_asked() {
        wait_for_person().await;
        let wait = LoginWait::begin();
        assert!(is_person_asked());
        let waiting = tokio::spawn(wait_for_person());
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(wait);
        waiting.await.unwrap();
        assert!(!is_person_asked());
    }
}
