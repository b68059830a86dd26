//! Newline framing for standard input and output, with bounded memory (2025-11-25 basic/transports, stdio).

use alloc::vec::Vec;
use core::mem;

use memchr::memchr;

use super::RETAINED_CAPACITY;

/// Splits a byte stream into lines.
///
/// A line ends at `\n`; one `\r` before it belongs to the line end. Lines of only whitespace are skipped. A line longer
/// than the limit is reported as soon as it exceeds the limit, with its first bytes, and again at its end, with its
/// last bytes. The rest of it is dropped on arrival. The division of the stream into chunks does not matter.
///
/// ```
/// use creole_proto::framing::{FramedLine, LineDecoder};
///
/// let mut lines = LineDecoder::new(1024);
/// let mut seen = Vec::new();
/// for mut chunk in [&b"{}\r\n\n{\"a\""[..], b":1}\n"] {
///     while let Some(FramedLine::Complete(line)) = lines.next(&mut chunk) {
///         seen.push(line.to_vec());
///     }
/// }
/// assert_eq!(seen, [&b"{}"[..], b"{\"a\":1}"]);
/// ```
#[derive(Debug)]
pub struct LineDecoder {
    limit: usize,
    /// The start of an incomplete line, without newlines.
    pending: Vec<u8>,
    /// Whether `pending` was returned as a line and must be cleared.
    is_pending_returned: bool,
    /// Whether the rest of an overlong line is being dropped.
    is_dropping: bool,
    /// Whether the end of an overlong line must still be reported.
    has_ended: bool,
    /// The first and the last bytes of an overlong line.
    start: Vec<u8>,
    end: Vec<u8>,
}

/// Number of bytes that are kept of each end of an overlong line.
const EXCERPT_BYTES: usize = 512;

/// A line, or the report of an overlong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramedLine<'a> {
    /// The bytes of the line, without its end.
    Complete(&'a [u8]),
    /// A line exceeded the limit; these are its first bytes.
    TooLong(&'a [u8]),
    /// The end of the line that exceeded the limit; these are its last bytes.
    TooLongEnd(&'a [u8]),
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes, not counting the line end.
    pub fn new(limit: usize) -> Self {
        let (pending, start, end) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            limit,
            pending,
            is_pending_returned: false,
            is_dropping: false,
            has_ended: false,
            start,
            end,
        }
    }

    /// Takes the next line from `chunk`. Call it until it returns `None`, which leaves `chunk` empty.
    ///
    /// A line that is contained in `chunk` is a slice of it. Only a line that spans chunks is copied, into a buffer
    /// that stays below the limit and shrinks after a large line.
    pub fn next<'a, 'c: 'a>(&'a mut self, chunk: &mut &'c [u8]) -> Option<FramedLine<'a>> {
        self.clear_returned();
        if mem::take(&mut self.has_ended) {
            return Some(FramedLine::TooLongEnd(&self.end));
        }
        let location = loop {
            let Some(end) = memchr(b'\n', chunk) else { break self.buffer_part(mem::take(chunk)) };
            let (line, rest) = (&chunk[..end], &chunk[end + 1..]);
            *chunk = rest;
            match self.end_line(line) {
                LineLocation::Nothing => {}
                location => break location,
            }
        };
        self.framed_line(location)
    }

    /// Whether it holds no part of a line, so that [`next`](Self::next) returns nothing for an empty chunk.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && !self.has_ended
    }

    /// Takes ownership of the last returned line, unless it was a slice of its chunk.
    pub fn take_line(&mut self) -> Option<Vec<u8>> {
        mem::take(&mut self.is_pending_returned).then(|| {
            let mut line = mem::take(&mut self.pending);
            line.truncate(strip_return(&line).len());
            line
        })
    }

    /// The memory used by the incomplete line.
    pub fn buffered_bytes(&self) -> usize {
        if self.is_pending_returned || self.pending.is_empty() {
            0
        } else {
            self.pending.capacity()
        }
    }

    /// Changes the limit for further lines.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Calls `on_line` for each line that ends in `chunk`.
    pub fn feed(&mut self, mut chunk: &[u8], mut on_line: impl FnMut(FramedLine<'_>)) {
        while let Some(line) = self.next(&mut chunk) {
            on_line(line);
        }
    }

    /// Returns the last line at the end of the stream, if it is not blank and lacks only its newline.
    pub fn finish(&mut self) -> Option<FramedLine<'_>> {
        self.clear_returned();
        self.is_dropping = false;
        let location = self.classify_pending();
        self.framed_line(location)
    }

    /// Handles a newline, with `line` before it.
    fn end_line<'c>(&mut self, line: &'c [u8]) -> LineLocation<'c> {
        if mem::take(&mut self.is_dropping) {
            append_bounded(&mut self.end, line);
            return LineLocation::TooLongEnd;
        }
        if self.pending.is_empty() {
            return match self.classify(line) {
                LineVerdict::Good => LineLocation::InChunk(strip_return(line)),
                LineVerdict::Blank => LineLocation::Nothing,
                LineVerdict::TooLong => self.end_overlong(line),
            };
        }
        if self.exceeds(line) {
            return self.end_overlong(line);
        }
        self.append(line);
        self.classify_pending()
    }

    /// Ends the pending line, which is too long with its last bytes `part`.
    fn end_overlong<'c>(&mut self, part: &[u8]) -> LineLocation<'c> {
        self.has_ended = true;
        self.start_overlong(part)
    }

    /// Starts dropping the pending line, which is too long with `part`. Only its ends are kept.
    fn start_overlong<'c>(&mut self, part: &[u8]) -> LineLocation<'c> {
        self.start.clear();
        self.end.clear();
        for bytes in [&self.pending[..], part] {
            let available = EXCERPT_BYTES - self.start.len();
            self.start.extend_from_slice(&bytes[..bytes.len().min(available)]);
            append_bounded(&mut self.end, bytes);
        }
        self.clear_pending();
        LineLocation::TooLong
    }

    /// Buffers a part of a line without its end.
    fn buffer_part<'c>(&mut self, part: &[u8]) -> LineLocation<'c> {
        if self.is_dropping {
            append_bounded(&mut self.end, part);
            return LineLocation::Nothing;
        }
        if self.exceeds(part) {
            self.is_dropping = true;
            return self.start_overlong(part);
        }
        self.append(part);
        LineLocation::Nothing
    }

    fn classify_pending<'c>(&mut self) -> LineLocation<'c> {
        match self.classify(&self.pending) {
            LineVerdict::Good => return LineLocation::InPending,
            LineVerdict::Blank => self.clear_pending(),
            LineVerdict::TooLong => return self.end_overlong(b""),
        }
        LineLocation::Nothing
    }

    fn classify(&self, line: &[u8]) -> LineVerdict {
        let line = strip_return(line);
        if line.len() > self.limit {
            LineVerdict::TooLong
        } else if line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r')) {
            LineVerdict::Blank
        } else {
            LineVerdict::Good
        }
    }

    /// Whether the pending line with `part` is too long in any case. A trailing `\r` may belong to the line end.
    fn exceeds(&self, part: &[u8]) -> bool {
        let length = self.pending.len() + part.len();
        let ends_in_return = part.last().or(self.pending.last()) == Some(&b'\r');
        length - usize::from(ends_in_return) > self.limit
    }

    fn append(&mut self, part: &[u8]) {
        let needed = self.pending.len() + part.len();
        if needed > self.pending.capacity() {
            // Doubling keeps the copying linear, but must not exceed the maximum size of a line.
            let max = self.limit.saturating_add(1);
            let target = needed.max(self.pending.capacity().saturating_mul(2).min(max));
            self.pending.reserve_exact(target - self.pending.len());
        }
        self.pending.extend_from_slice(part);
    }

    fn framed_line<'a, 'c: 'a>(&'a mut self, location: LineLocation<'c>) -> Option<FramedLine<'a>> {
        match location {
            LineLocation::Nothing => None,
            LineLocation::TooLong => Some(FramedLine::TooLong(&self.start)),
            LineLocation::TooLongEnd => Some(FramedLine::TooLongEnd(&self.end)),
            LineLocation::InChunk(line) => Some(FramedLine::Complete(line)),
            LineLocation::InPending => {
                self.is_pending_returned = true;
                Some(FramedLine::Complete(strip_return(&self.pending)))
            }
        }
    }

    fn clear_returned(&mut self) {
        if mem::take(&mut self.is_pending_returned) {
            self.clear_pending();
        }
    }

    fn clear_pending(&mut self) {
        self.pending.clear();
        self.pending.shrink_to(RETAINED_CAPACITY);
    }
}

/// The location of a found line, before the pending buffer is borrowed.
#[derive(Clone, Copy)]
enum LineLocation<'c> {
    Nothing,
    TooLong,
    TooLongEnd,
    InChunk(&'c [u8]),
    InPending,
}

enum LineVerdict {
    Good,
    Blank,
    TooLong,
}

/// Appends to the last bytes of a line and drops the oldest beyond the limit.
fn append_bounded(end: &mut Vec<u8>, part: &[u8]) {
    let part = &part[part.len().saturating_sub(EXCERPT_BYTES)..];
    let surplus = (end.len() + part.len()).saturating_sub(EXCERPT_BYTES);
    end.drain(..surplus);
    end.extend_from_slice(part);
}

fn strip_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;

    /// The lines of `input` as text, split into chunks of `size`. `!` represents an overlong line.
    fn lines(limit: usize, input: &[u8], size: usize) -> Vec<String> {
        let mut seen = Vec::new();
        let mut lines = LineDecoder::new(limit);
        for chunk in input.chunks(size) {
            lines.feed(chunk, |line| seen.extend(shown(line)));
        }
        seen.extend(lines.finish().and_then(shown));
        seen
    }

    fn shown(line: FramedLine<'_>) -> Option<String> {
        match line {
            FramedLine::Complete(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            FramedLine::TooLong(_) => Some(String::from("!")),
            FramedLine::TooLongEnd(_) => None,
        }
    }

    #[test]
    fn a_line_in_its_own_buffer_can_be_moved_out() {
        let mut lines = LineDecoder::new(100);
        let (mut first, mut second) = (&b"ab"[..], &b"c\r\nde\n"[..]);
        assert_eq!(lines.next(&mut first), None);
        assert_eq!(lines.next(&mut second), Some(FramedLine::Complete(b"abc")));
        assert_eq!(lines.take_line().as_deref(), Some(&b"abc"[..]));
        assert_eq!(lines.next(&mut second), Some(FramedLine::Complete(b"de")));
        assert_eq!(lines.take_line(), None);
    }

    fn agree(limit: usize, input: &[u8], expected: &[&str]) {
        for size in 1..=input.len() {
            assert_eq!(lines(limit, input, size), expected, "chunks of {size}");
        }
    }

    #[test]
    fn line_ends_and_blank_lines_are_tolerated() {
        agree(9, b"a\nb\r\n\n \t\r\nc\r\r\n\r\nd", &["a", "b", "c\r", "d"]);
    }

    #[test]
    fn the_limit_counts_the_line_without_its_end() {
        agree(3, b"abc\nabc\r\nabcd\nabc\r\r\nabcd\r\nabc", &["abc", "abc", "!", "!", "!", "abc"]);
        agree(3, b"abc\r", &["abc"]);
        agree(3, b"ab\rc\nx\n", &["!", "x"]);
    }

    #[test]
    fn an_overlong_line_is_reported_once_and_as_soon_as_known() {
        let mut lines = LineDecoder::new(3);
        let mut chunk = &b"abcd"[..];
        assert_eq!(lines.next(&mut chunk), Some(FramedLine::TooLong(b"abcd")));
        for mut more in [&b"efgh"[..], b"ijkl"] {
            assert_eq!(lines.next(&mut more), None);
        }
        chunk = b"mn\nnext\nok\n";
        assert_eq!(lines.next(&mut chunk), Some(FramedLine::TooLongEnd(b"abcdefghijklmn")));
        assert_eq!(lines.next(&mut chunk), Some(FramedLine::TooLong(b"next")));
        assert_eq!(lines.next(&mut chunk), Some(FramedLine::TooLongEnd(b"next")));
        assert_eq!(lines.next(&mut chunk), Some(FramedLine::Complete(b"ok")));
        assert_eq!(lines.next(&mut chunk), None);
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn both_ends_of_an_overlong_line_are_kept_for_every_split() {
        let line: Vec<u8> = (0..5000_u32).map(|at| b'a' + (at % 23) as u8).collect();
        let mut input = line.clone();
        input.extend_from_slice(b"\nok\n");
        for size in [1, 7, 511, 512, 513, 4096, 6000] {
            let (mut lines, mut ends) = (LineDecoder::new(1000), Vec::new());
            for chunk in input.chunks(size) {
                lines.feed(chunk, |line| match line {
                    FramedLine::TooLong(start) => ends.push(start[..16].to_vec()),
                    FramedLine::TooLongEnd(end) => {
                        ends.push(end[end.len() - EXCERPT_BYTES..].to_vec())
                    }
                    FramedLine::Complete(line) => ends.push(line.to_vec()),
                });
            }
            let expected = [&line[..16], &line[line.len() - EXCERPT_BYTES..], b"ok"];
            assert_eq!(ends, expected, "chunks of {size}");
        }
    }

    #[test]
    fn an_overlong_last_line_is_not_offered_again() {
        agree(3, b"abcdefgh", &["!"]);
        agree(3, b"          \nx", &["!", "x"]);
    }

    #[test]
    fn a_line_within_its_chunk_is_not_copied() {
        let mut lines = LineDecoder::new(100);
        let whole = b"first\nsecond\nthi";
        let mut chunk = &whole[..];
        let Some(FramedLine::Complete(first)) = lines.next(&mut chunk) else { panic!("no line") };
        assert!(whole.as_ptr_range().contains(&first.as_ptr()));
        assert_eq!(lines.next(&mut chunk), Some(FramedLine::Complete(b"second")));
        assert_eq!(lines.pending.capacity(), 0);
        assert_eq!(lines.next(&mut chunk), None);
        assert_eq!(lines.pending, b"thi");
    }

    #[test]
    fn memory_stays_bounded_and_is_released() {
        const MIB: usize = 1024 * 1024;
        let mut lines = LineDecoder::new(MIB);
        let mut news = 0;
        for _ in 0..50 * 16 {
            lines.feed(&[b'x'; MIB / 16], |line| {
                news += usize::from(matches!(line, FramedLine::TooLong(_)))
            });
            assert!(lines.pending.capacity() <= MIB + 1);
        }
        assert_eq!(news, 1);
        assert!(lines.pending.capacity() <= RETAINED_CAPACITY);

        let mut lengths = vec![];
        let mut note = |line: FramedLine<'_>| lengths.extend(shown(line).map(|line| line.len()));
        lines.feed(b"\n", &mut note);
        for _ in 0..16 {
            lines.feed(&[b'x'; MIB / 16], &mut note);
        }
        lines.feed(b"\nsmall\n", &mut note);
        assert_eq!(lengths, [MIB, 5]);
        assert!(lines.pending.capacity() <= RETAINED_CAPACITY);
    }
}
