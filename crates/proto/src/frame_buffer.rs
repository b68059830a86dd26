//! Frames that wait to be sent, one after the other in one buffer, each with what it is.

use alloc::vec::Vec;

use crate::encode::replace_line_ends;

/// Room for a short frame, so that the first one is not copied each time that its buffer grows.
const INITIAL_CAPACITY: usize = 512;

/// Room that is kept when the frames are gone.
const RETAINED_CAPACITY: usize = 64 * 1024;

/// Frames, each ended by a newline and marked with an `M`.
#[derive(Debug)]
pub(crate) struct FrameBuffer<M> {
    bytes: Vec<u8>,
    /// What each frame is, and where it ends.
    marked_ends: Vec<(M, usize)>,
}

impl<M> Default for FrameBuffer<M> {
    fn default() -> Self {
        Self { bytes: Vec::new(), marked_ends: Vec::new() }
    }
}

impl<M: Copy> FrameBuffer<M> {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        self.marked_ends.clear();
        core::mem::take(&mut self.bytes)
    }

    /// Forgets the frames, keeping the room they took; gives back what an unusually large frame took.
    pub(crate) fn clear(&mut self) {
        self.marked_ends.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 4 * RETAINED_CAPACITY {
            self.bytes.shrink_to(RETAINED_CAPACITY);
        }
    }

    /// Forgets the first bytes, which somebody has taken.
    pub(crate) fn discard(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.marked_ends.retain(|(_, end)| *end > count);
        self.marked_ends.iter_mut().for_each(|(_, end)| *end -= count);
    }

    /// What each frame is, and its text without the newline.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (M, &[u8])> {
        let starts = core::iter::once(0).chain(self.marked_ends.iter().map(|(_, end)| *end));
        let frames = self.marked_ends.iter().zip(starts);
        frames.map(|((mark, end), start)| (*mark, &self.bytes[start..end - 1]))
    }

    /// Adds a frame that `write` writes.
    pub(crate) fn add(&mut self, mark: M, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.add_line(mark, |bytes| {
            write(bytes);
            replace_line_ends(&mut bytes[start..]);
        });
    }

    /// Adds a frame that `write` writes without line ends; a long one is not searched for them again.
    pub(crate) fn add_line(&mut self, mark: M, write: impl FnOnce(&mut Vec<u8>)) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(INITIAL_CAPACITY);
        }
        write(&mut self.bytes);
        self.bytes.push(b'\n');
        self.marked_ends.push((mark, self.bytes.len()));
    }
}
