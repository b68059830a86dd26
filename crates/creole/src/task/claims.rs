//! Who asks which question: one that two requests wait for is asked once.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Questions that are being asked.
#[derive(Debug, Default)]
pub(super) struct Claims {
    asked: Mutex<HashSet<(String, String)>>,
    freed: Notify,
}

/// The right to ask one question; it ends when it is dropped.
#[derive(Debug)]
pub(super) struct Claim<'a> {
    claims: &'a Claims,
    question: (String, String),
}

impl Claims {
    /// Claims a question of a task, unless somebody else asks it.
    pub(super) fn claim(&self, task: &str, key: &str) -> Option<Claim<'_>> {
        let question = (task.to_owned(), key.to_owned());
        let is_free = self.lock().insert(question.clone());
        // Not `then_some`: a claim that is made and dropped would free the other one's.
        if is_free { Some(Claim { claims: self, question }) } else { None }
    }

    /// Resolves when a claim has ended, perhaps without an answer.
    pub(super) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.claims.lock().remove(&self.question);
        self.claims.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_asked_by_one_at_a_time() {
        let claims = Claims::default();
        let first = claims.claim("t", "a").unwrap();
        assert!(claims.claim("t", "a").is_none());
        assert!(claims.claim("t", "a").is_none(), "a refusal changes nothing");
        assert!(claims.claim("t", "b").is_some());
        drop(first);
        assert!(claims.claim("t", "a").is_some());
    }
}
