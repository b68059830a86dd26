//! Reads the lines of a file from the last one to the first, in blocks.

use std::fs::File;
use std::io;
use std::io::{Read, Seek, SeekFrom};

/// The size of a block in bytes.
const BLOCK: usize = 1 << 20;

/// The maximum length of a line in bytes. A longer one is skipped. The audit log writes no such lines.
pub(crate) const MAX_LINE: usize = 4 << 20;

/// The lines of a file before an offset, the last one first.
pub(crate) struct BackwardLines {
    file: File,
    /// The offset of the buffer in the file.
    start: u64,
    buffer: Vec<u8>,
    /// The end of what is unread in the buffer.
    end: usize,
    /// Whether the end of the buffer is inside of a line that is too long.
    skips: bool,
}

impl BackwardLines {
    /// The lines that end before this offset.
    pub(crate) fn new(file: File, offset: u64) -> Self {
        Self { file, start: offset, buffer: Vec::new(), end: 0, skips: false }
    }

    /// The offset behind the lines that have not been read.
    pub(crate) fn offset(&self) -> u64 {
        self.start + self.end as u64
    }

    /// The next line with its offset, without its line end.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        loop {
            // The line end before the offset belongs to the line before it.
            let content = match self.buffer[..self.end].last() {
                Some(b'\n') => self.end - 1,
                _ => self.end,
            };
            match memchr::memrchr(b'\n', &self.buffer[..content]) {
                Some(before) if self.skips => {
                    self.skips = false;
                    self.end = before + 1;
                }
                Some(before) => {
                    self.end = before + 1;
                    let offset = self.start + self.end as u64;
                    return Ok(Some((offset, &self.buffer[before + 1..content])));
                }
                None if self.start > 0 => self.read_block()?,
                None if self.end == 0 || self.skips => return Ok(None),
                None => {
                    self.end = 0;
                    return Ok(Some((0, &self.buffer[..content])));
                }
            }
        }
    }

    /// Puts the block before the unread part of the buffer.
    fn read_block(&mut self) -> io::Result<()> {
        if self.end > MAX_LINE {
            self.skips = true;
            self.end = 0;
        }
        let length = BLOCK.min(usize::try_from(self.start).unwrap_or(BLOCK));
        // The buffer keeps its length, so that it is not filled with zeros for each block.
        if self.buffer.len() < length + self.end {
            self.buffer.resize(length + self.end, 0);
        }
        self.buffer.copy_within(..self.end, length);
        self.start -= length as u64;
        self.file.seek(SeekFrom::Start(self.start))?;
        self.file.read_exact(&mut self.buffer[..length])?;
        self.end += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines_of(text: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let mut lines = BackwardLines::new(file, text.len() as u64);
        let mut all = Vec::new();
        while let Some((offset, line)) = lines.next_line().unwrap() {
            all.push((offset, line.to_vec()));
        }
        all
    }

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        let expected = [(6, "c"), (3, "bb"), (1, "a"), (0, "")]
            .map(|(offset, line): (u64, &str)| (offset, line.as_bytes().to_vec()));
        assert_eq!(lines_of(b"\na\nbb\nc\n"), expected);
        assert_eq!(lines_of(b"\na\nbb\nc"), expected, "an unfinished last line");
        assert_eq!(lines_of(b""), []);
        assert_eq!(lines_of(b"x"), [(0, b"x".to_vec())]);
        assert_eq!(lines_of(b"\n\n").len(), 2);
    }

    #[test]
    fn lines_cross_blocks() {
        let mut text = Vec::new();
        let mut expected = Vec::new();
        for number in 0..5000_usize {
            let line = format!("{number}:{}", "x".repeat(number % 1500)).into_bytes();
            expected.push((text.len() as u64, line.clone()));
            text.extend(line);
            text.push(b'\n');
        }
        expected.reverse();
        assert!(text.len() > 3 * BLOCK);
        assert!(lines_of(&text) == expected);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped() {
        let long = "y".repeat(MAX_LINE + 2 * BLOCK);
        for text in [format!("a\n{long}\nb\n"), format!("{long}\na\nb\n"), format!("a\nb\n{long}")]
        {
            let lines = lines_of(text.as_bytes());
            let lines: Vec<_> = lines.iter().map(|(_, line)| &line[..]).collect();
            assert_eq!(lines, [b"b", b"a"]);
        }
    }
}
