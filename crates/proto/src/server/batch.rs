//! Batches: joins the responses to the messages of one frame into one frame (2025-03-26 basic, batching).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Batches with outstanding responses.
#[derive(Debug, Default)]
pub(super) struct Batches {
    last: u64,
    open: BTreeMap<u64, OpenBatch>,
}

#[derive(Debug)]
struct OpenBatch {
    /// Number of requests without a response or a cancellation, plus one while the frame is being read.
    open_requests: usize,
    /// The responses, joined by commas.
    responses: Vec<u8>,
}

impl Batches {
    /// Opens a batch. [`Batches::finish_request`] ends the reading of its frame.
    pub(super) fn open(&mut self) -> u64 {
        self.last += 1;
        self.open.insert(self.last, OpenBatch { open_requests: 1, responses: Vec::new() });
        self.last
    }

    /// Adds a request to the batch.
    pub(super) fn add_request(&mut self, key: u64) {
        if let Some(batch) = self.open.get_mut(&key) {
            batch.open_requests += 1;
        }
    }

    /// Adds a response.
    pub(super) fn add_response(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(batch) = self.open.get_mut(&key) {
            batch.responses.push(if batch.responses.is_empty() { b'[' } else { b',' });
            write(&mut batch.responses);
        }
    }

    /// Removes one outstanding request. Returns the whole response after the last one, unless it is empty
    /// (JSON-RPC 2.0, section 6).
    pub(super) fn finish_request(&mut self, key: u64) -> Option<Vec<u8>> {
        let batch = self.open.get_mut(&key)?;
        batch.open_requests -= 1;
        if batch.open_requests > 0 {
            return None;
        }
        let mut answers = self.open.remove(&key)?.responses;
        if answers.is_empty() {
            return None;
        }
        answers.push(b']');
        Some(answers)
    }
}
