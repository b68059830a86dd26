//! A queue of frames to be sent, stored in one buffer. Each frame has a mark that describes it.

use alloc::vec::Vec;

/// Initial capacity: fits a short frame, so that the first frame does not reallocate.
const INITIAL_CAPACITY: usize = 512;

/// Maximum capacity that stays allocated when the buffer is empty.
const RETAINED_CAPACITY: usize = 64 * 1024;

/// Frames, each terminated by a newline and labelled with an `M` (2025-11-25 basic/transports, stdio).
#[derive(Debug)]
pub(crate) struct FrameBuffer<M> {
    bytes: Vec<u8>,
    /// The mark of each frame and its end offset.
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

    /// Removes all frames. The buffer keeps its capacity up to [`RETAINED_CAPACITY`].
    pub(crate) fn clear(&mut self) {
        self.marked_ends.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 4 * RETAINED_CAPACITY {
            self.bytes.shrink_to(RETAINED_CAPACITY);
        }
    }

    /// Removes the first `count` bytes, which were sent.
    pub(crate) fn discard(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.marked_ends.retain(|(_, end)| *end > count);
        self.marked_ends.iter_mut().for_each(|(_, end)| *end -= count);
    }

    /// The mark and the text of each frame, without the newline.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (M, &[u8])> {
        let starts = core::iter::once(0).chain(self.marked_ends.iter().map(|(_, end)| *end));
        let frames = self.marked_ends.iter().zip(starts);
        frames.map(|((mark, end), start)| (*mark, &self.bytes[start..end - 1]))
    }

    /// Appends a frame that `write` produces.
    pub(crate) fn add(&mut self, mark: M, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.add_line(mark, |bytes| {
            write(bytes);
            replace_line_ends(&mut bytes[start..]);
        });
    }

    /// Appends a frame that `write` produces without line ends. The frame is not searched for newlines.
    pub(crate) fn add_line(&mut self, mark: M, write: impl FnOnce(&mut Vec<u8>)) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(INITIAL_CAPACITY);
        }
        write(&mut self.bytes);
        self.bytes.push(b'\n');
        self.marked_ends.push((mark, self.bytes.len()));
    }
}

/// Replaces line ends in a frame by spaces. They can only be whitespace of a peer's JSON, since strings contain none
/// (RFC 8259, 7).
fn replace_line_ends(frame: &mut [u8]) {
    let mut start = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &frame[start..]) {
        frame[start + found] = b' ';
        start += found + 1;
    }
}
