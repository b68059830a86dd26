//! The results of login attempts that wait to be announced to the other replicas.

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::Digest;
use crate::sync::Mutex;

/// Maximum number of results in an announcement.
pub(super) const MAX_RESULTS: usize = 1024;

/// What happened to a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptResult {
    /// A password of an account was wrong.
    AccountFailed,
    /// A password from an address was wrong.
    AddressFailed,
    /// A key from an address was wrong.
    KeyFailed,
    /// A password was right after wrong ones.
    AccountReset,
}

impl AttemptResult {
    const ALL: [(Self, u8); 4] = [
        (Self::AccountFailed, b'a'),
        (Self::AddressFailed, b'n'),
        (Self::KeyFailed, b'k'),
        (Self::AccountReset, b'r'),
    ];

    pub(super) fn code(self) -> u8 {
        Self::ALL.iter().find(|(result, _)| *result == self).map_or(0, |(_, code)| *code)
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == code).map(|(result, _)| *result)
    }
}

/// The results that are not announced yet.
#[derive(Debug, Default)]
pub(super) struct AttemptOutbox {
    results: Mutex<Vec<(AttemptResult, Digest)>>,
    wake: Notify,
}

impl AttemptOutbox {
    /// The results, once there are some and it is time.
    pub(super) async fn take(&self, earliest: Instant) -> Vec<(AttemptResult, Digest)> {
        while self.is_empty() {
            self.wake.notified().await;
        }
        sleep_until(earliest).await;
        std::mem::take(&mut *self.results.lock())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.results.lock().is_empty()
    }

    /// Announces a result soon, if there is room.
    pub(super) fn push(&self, result: AttemptResult, subject: Digest) {
        let mut results = self.results.lock();
        if results.len() < MAX_RESULTS {
            results.push((result, subject));
            self.wake.notify_one();
        }
    }
}
