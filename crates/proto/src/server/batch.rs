//! Batches: the answers to several messages of one frame, joined into one.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Batches that wait for answers.
#[derive(Debug, Default)]
pub(super) struct Batches {
    last: u64,
    open: BTreeMap<u64, Batch>,
}

#[derive(Debug)]
struct Batch {
    /// Requests that are neither answered nor cancelled, and one more while the frame is being read.
    waiting: usize,
    /// The answers, joined by commas.
    answers: Vec<u8>,
}

impl Batches {
    /// Opens a batch; [`Batches::settle`] ends the reading of its frame.
    pub(super) fn open(&mut self) -> u64 {
        self.last += 1;
        self.open.insert(self.last, Batch { waiting: 1, answers: Vec::new() });
        self.last
    }

    /// One more request of the batch waits.
    pub(super) fn wait(&mut self, key: u64) {
        if let Some(batch) = self.open.get_mut(&key) {
            batch.waiting += 1;
        }
    }

    /// Adds an answer.
    pub(super) fn answer(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(batch) = self.open.get_mut(&key) {
            batch.answers.push(if batch.answers.is_empty() { b'[' } else { b',' });
            write(&mut batch.answers);
        }
    }

    /// One wait is over; returns the whole answer when it was the last and there is one.
    pub(super) fn settle(&mut self, key: u64) -> Option<Vec<u8>> {
        let batch = self.open.get_mut(&key)?;
        batch.waiting -= 1;
        if batch.waiting > 0 {
            return None;
        }
        let mut answers = self.open.remove(&key)?.answers;
        if answers.is_empty() {
            return None;
        }
        answers.push(b']');
        Some(answers)
    }
}
