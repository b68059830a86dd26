//! Claims on input requests: one that two requests wait for is sent once.

use crate::sync::Mutex;
use std::collections::HashSet;
use std::sync::MutexGuard;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Input requests that are being sent.
#[derive(Debug, Default)]
pub(super) struct InputClaims {
    claimed: Mutex<HashSet<(String, String)>>,
    released: Notify,
}

/// The right to send one input request; dropping it releases the claim.
#[derive(Debug)]
pub(super) struct InputClaim<'a> {
    claims: &'a InputClaims,
    key: (String, String),
}

impl InputClaims {
    /// Claims an input request of a task, unless it is already claimed.
    pub(super) fn claim(&self, task: &str, key: &str) -> Option<InputClaim<'_>> {
        let question = (task.to_owned(), key.to_owned());
        let is_free = self.lock().insert(question.clone());
        // Not `then_some`: a claim that is created and dropped would release the other one.
        if is_free { Some(InputClaim { claims: self, key: question }) } else { None }
    }

    /// Resolves when a claim was released, perhaps without a response.
    pub(super) fn released(&self) -> Notified<'_> {
        self.released.notified()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.claimed.lock()
    }
}

impl Drop for InputClaim<'_> {
    fn drop(&mut self) {
        self.claims.lock().remove(&self.key);
        self.claims.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_request_is_claimed_by_one_at_a_time() {
        let claims = InputClaims::default();
        let first = claims.claim("t", "a").unwrap();
        assert!(claims.claim("t", "a").is_none());
        assert!(claims.claim("t", "a").is_none(), "a rejected claim changes nothing");
        assert!(claims.claim("t", "b").is_some());
        drop(first);
        assert!(claims.claim("t", "a").is_some());
    }
}
