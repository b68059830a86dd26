//! Finds the lines of a file that were written clearly after a period, by bisection over offsets.
//!
//! The lines of a file are nearly in the order of their times: a line is written at the end of its call and has the time
//! of its start, and the clocks of several writers differ. A line that is later than the period by the maximum of both
//! shows that no line behind it belongs to the period. Nothing is skipped if the lines that are looked at are not in the
//! order of their times, such as after a clock was set back.

use std::fs::File;
use std::io;
use std::io::{Read, Seek, SeekFrom};

use crate::audit::backward_lines::MAX_LINE;
use crate::audit::search::query::{LineFields, QueryFilter};

/// The bisection ends at this many bytes.
const MIN_RANGE: u64 = 16 << 10;
/// How many bytes are read at once.
const READ_BYTES: usize = 8 << 10;
/// How many places behind the found offset are looked at.
const CHECKED_PLACES: u64 = 16;

/// Where the backward search of a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SearchStart {
    /// The offset behind the lines that may belong to the period.
    pub(super) offset: u64,
    /// How many bytes were read to find it.
    pub(super) read_bytes: u64,
}

/// Finds where the lines before an offset end that may belong to the period.
pub(super) fn skip_later_lines(
    file: &mut File,
    end: u64,
    filter: &QueryFilter,
) -> io::Result<SearchStart> {
    let Some(surely_after) = filter.surely_after() else {
        return Ok(SearchStart { offset: end, read_bytes: 0 });
    };
    let mut reader = ForwardReader { file, read_bytes: 0 };
    let found = bisect(&mut reader, end, surely_after)?;
    let offset = match found {
        Some(offset) if is_in_order(&mut reader, offset, end)? => offset,
        _ => end,
    };
    Ok(SearchStart { offset, read_bytes: reader.read_bytes })
}

/// The offset of a line that is this late, while a line shortly before it is not.
fn bisect(reader: &mut ForwardReader<'_>, end: u64, time: &str) -> io::Result<Option<u64>> {
    let (mut low, mut high, mut found) = (0, end, None);
    while high - low > MIN_RANGE {
        let middle = low + (high - low) / 2;
        match reader.first_time(middle, high)? {
            FirstTime::Found { offset, time: first, .. } if *first >= *time => {
                (high, found) = (middle, Some(offset));
            }
            FirstTime::Found { line_end, .. } => low = line_end.min(high),
            FirstTime::None => high = middle,
            FirstTime::Unknown => return Ok(None),
        }
    }
    Ok(found)
}

/// Whether the lines that are looked at between two offsets are in the order of their times. They are far from each other,
/// so the times of calls seldom change their order.
fn is_in_order(reader: &mut ForwardReader<'_>, start: u64, end: u64) -> io::Result<bool> {
    let mut latest = Box::default();
    for place in 0..CHECKED_PLACES {
        let offset = start + (end - start) / CHECKED_PLACES * place;
        match reader.first_time(offset, end)? {
            FirstTime::Found { time, .. } if time < latest => return Ok(false),
            FirstTime::Found { time, .. } => latest = time,
            FirstTime::None => {}
            FirstTime::Unknown => return Ok(false),
        }
    }
    Ok(true)
}

/// The first line with a time in a range.
enum FirstTime {
    Found {
        offset: u64,
        line_end: u64,
        time: Box<str>,
    },
    /// No line in the range has a time.
    None,
    /// There are too many bytes without a time.
    Unknown,
}

/// Reads a file forwards from any offset.
struct ForwardReader<'a> {
    file: &'a mut File,
    read_bytes: u64,
}

impl ForwardReader<'_> {
    /// The first line that starts in the range and has a time.
    fn first_time(&mut self, from: u64, to: u64) -> io::Result<FirstTime> {
        // The byte before the range tells whether a line starts at the range.
        let start = from.saturating_sub(1);
        let mut bytes = Vec::new();
        let mut line_start = (from == 0).then_some(0);
        let mut searched = 0;
        self.file.seek(SeekFrom::Start(start))?;
        loop {
            while let Some(length) = memchr::memchr(b'\n', &bytes[searched..]) {
                let line_end = searched + length + 1;
                if let Some(line) = line_start.map(|at| &bytes[at..line_end - 1])
                    && let Some(time) = time_of(line)
                {
                    let offset = start + line_start.unwrap_or_default() as u64;
                    let line_end = start + line_end as u64;
                    return Ok(FirstTime::Found { offset, line_end, time });
                }
                if start + line_end as u64 >= to {
                    return Ok(FirstTime::None);
                }
                (line_start, searched) = (Some(line_end), line_end);
            }
            searched = bytes.len();
            if searched > MAX_LINE {
                return Ok(FirstTime::Unknown);
            }
            let limit = READ_BYTES.max(searched) as u64;
            let read = self.file.by_ref().take(limit).read_to_end(&mut bytes)?;
            self.read_bytes += read as u64;
            if read == 0 {
                return Ok(FirstTime::None);
            }
        }
    }
}

fn time_of(line: &[u8]) -> Option<Box<str>> {
    let time = LineFields::parse(line)?.time?;
    (!time.is_empty()).then(|| time.into())
}
