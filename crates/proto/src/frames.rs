//! Frames that wait to be sent, one after the other in one buffer, each with what it is.

use alloc::vec::Vec;

use crate::encode::keep_on_one_line;

/// Room for a short frame, so that the first one is not copied each time that its buffer grows.
const USUAL: usize = 512;

/// Room that is kept when the frames are gone.
const KEPT: usize = 64 * 1024;

/// Frames, each ended by a newline and marked with an `M`.
#[derive(Debug)]
pub(crate) struct Frames<M> {
    bytes: Vec<u8>,
    /// What each frame is, and where it ends.
    marks: Vec<(M, usize)>,
}

impl<M> Default for Frames<M> {
    fn default() -> Self {
        Self { bytes: Vec::new(), marks: Vec::new() }
    }
}

impl<M: Copy> Frames<M> {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        self.marks.clear();
        core::mem::take(&mut self.bytes)
    }

    /// Forgets the frames, keeping the room they took; gives back what an unusually large frame took.
    pub(crate) fn clear(&mut self) {
        self.marks.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 4 * KEPT {
            self.bytes.shrink_to(KEPT);
        }
    }

    /// Forgets the first bytes, which somebody has taken.
    pub(crate) fn discard(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.marks.retain(|(_, end)| *end > count);
        self.marks.iter_mut().for_each(|(_, end)| *end -= count);
    }

    /// What each frame is, and its text without the newline.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (M, &[u8])> {
        let starts = core::iter::once(0).chain(self.marks.iter().map(|(_, end)| *end));
        let frames = self.marks.iter().zip(starts);
        frames.map(|((mark, end), start)| (*mark, &self.bytes[start..end - 1]))
    }

    /// Adds a frame that `write` writes.
    pub(crate) fn add(&mut self, mark: M, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.add_line(mark, |bytes| {
            write(bytes);
            keep_on_one_line(&mut bytes[start..]);
        });
    }

    /// Adds a frame that `write` writes without line ends; a long one is not searched for them again.
    pub(crate) fn add_line(&mut self, mark: M, write: impl FnOnce(&mut Vec<u8>)) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(USUAL);
        }
        write(&mut self.bytes);
        self.bytes.push(b'\n');
        self.marks.push((mark, self.bytes.len()));
    }
}
