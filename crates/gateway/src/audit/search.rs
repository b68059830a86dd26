//! Searches audit logs, from the newest line to the oldest. There is no index: files are read backwards in blocks. The
//! lines that were written clearly after a period are skipped by bisection.
//!
//! A page ends when it is full or when its time is over. Its cursor continues there, also after the files were rotated.

mod cursor;
mod later_lines;
mod query;
#[cfg(test)]
mod tests;
mod time_text;

use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crate::audit::backward_lines::BackwardLines;
use crate::audit::log_files::{LogFiles, group};
use cursor::{Cursor, LogPosition, file_number};
use later_lines::skip_later_lines;
pub use query::{AuditQuery, MAX_PAGE};
use query::{LineFields, QueryFilter};

/// The maximum number of logs that are searched together. Each one needs memory for a block.
const MAX_LOGS: usize = 16;
/// The time after which a page ends.
const PAGE_TIME: Duration = Duration::from_secs(5);
/// How many lines are read before the time is looked at.
const LINES_PER_LOOK: u32 = 256;
/// A search ends after this many consecutive lines that are clearly too old. Lines are written when calls end, so they
/// are not in the order of their times.
const MAX_OLD_LINES: u32 = 10_000;

/// Of the lines that do not match, the time of one of this many is looked at.
const AGE_SAMPLE: u32 = 16;
/// A page ends when its lines have this many bytes.
const MAX_PAGE_BYTES: usize = 8 << 20;

/// A page of found lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditPage {
    /// The lines as they were written, the newest first.
    pub lines: Vec<Box<str>>,
    /// Continues the search, if there may be more lines.
    pub next: Option<String>,
    /// How many bytes were read.
    pub searched_bytes: u64,
    /// False if the page ended because its time was over, and not because it was full or nothing was left.
    pub is_complete: bool,
}

/// Why a search failed.
#[derive(Debug)]
pub enum SearchError {
    /// A file cannot be read.
    File(PathBuf, io::Error),
    /// The cursor is invalid, or its file was deleted.
    Cursor,
    /// There are too many logs.
    TooManyLogs(usize),
}

impl fmt::Display for SearchError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, error) => {
                write!(formatter, "cannot read `{}`: {error}", path.display())
            }
            Self::Cursor => formatter.write_str(
                "the cursor is invalid for these files, or its file was deleted; search again without it",
            ),
            Self::TooManyLogs(count) => {
                write!(formatter, "{count} logs are too many; search at most {MAX_LOGS} at once")
            }
        }
    }
}

impl Error for SearchError {}

/// Searches these files. Rotated files may be named in any order. The lines of several logs are merged by their times.
///
/// # Errors
/// When a file cannot be read, or the cursor is invalid.
pub fn search(files: &[PathBuf], query: &AuditQuery) -> Result<AuditPage, SearchError> {
    search_within(files, query, PAGE_TIME)
}

fn search_within(
    files: &[PathBuf],
    query: &AuditQuery,
    time: Duration,
) -> Result<AuditPage, SearchError> {
    let filter = QueryFilter::new(query);
    let deadline = Instant::now() + time;
    let mut logs = open_logs(files, query.cursor.as_deref(), &filter)?;
    let mut page = AuditPage { is_complete: true, ..AuditPage::default() };
    let limit = query.limit.clamp(1, MAX_PAGE);
    let mut bytes = 0;
    while page.lines.len() < limit && bytes < MAX_PAGE_BYTES {
        for log in logs.iter_mut().filter(|log| log.found.is_none()) {
            log.find(&filter, deadline)?;
        }
        // A log that could not be searched in time may have a newer line than the others.
        if logs.iter().any(|log| log.found.is_none() && !log.is_done) {
            page.is_complete = false;
            break;
        }
        let newest = logs.iter_mut().max_by(|a, b| a.found_time().cmp(&b.found_time()));
        let Some(found) = newest.and_then(|log| log.found.take()) else { break };
        bytes += found.line.len();
        page.lines.push(found.line);
    }
    page.searched_bytes = logs.iter().map(|log| log.searched_bytes).sum();
    if logs.iter().any(|log| log.found.is_some() || !log.is_done) {
        page.next = Some(Cursor(logs.iter().map(LogSearch::place).collect()).to_string());
    }
    Ok(page)
}

fn open_logs(
    files: &[PathBuf],
    cursor: Option<&str>,
    filter: &QueryFilter,
) -> Result<Vec<LogSearch>, SearchError> {
    let groups = group(files);
    if groups.len() > MAX_LOGS {
        return Err(SearchError::TooManyLogs(groups.len()));
    }
    let cursor = cursor.map(|text| Cursor::parse(text).ok_or(SearchError::Cursor)).transpose()?;
    if cursor.as_ref().is_some_and(|cursor| cursor.0.len() != groups.len()) {
        return Err(SearchError::Cursor);
    }
    let places = cursor.map(|cursor| cursor.0).unwrap_or_default();
    let places = places.into_iter().map(Some).chain(std::iter::repeat(None));
    let logs = groups.into_iter().zip(places);
    logs.map(|(files, place)| LogSearch::open(files, place, filter)).collect()
}

/// A line that was found and is not on the page yet.
struct FoundLine {
    line: Box<str>,
    time: Option<String>,
    /// Where it ends.
    end: u64,
}

/// The search in one log.
struct LogSearch {
    /// The files that were not begun, the newest last.
    older: Vec<(PathBuf, File)>,
    current: Option<(PathBuf, u64, BackwardLines)>,
    found: Option<FoundLine>,
    is_done: bool,
    searched_bytes: u64,
    old_lines: u32,
}

impl LogSearch {
    fn open(
        paths: LogFiles,
        place: Option<LogPosition>,
        filter: &QueryFilter,
    ) -> Result<Self, SearchError> {
        // All are opened before the first is read, so that a rotation in between hides nothing.
        let open = |path: PathBuf| match File::open(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(SearchError::File(path, error)),
        };
        let mut older = paths.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut log = Self {
            older: Vec::new(),
            current: None,
            found: None,
            is_done: false,
            searched_bytes: 0,
            old_lines: 0,
        };
        match place {
            None => {}
            Some(LogPosition::End) => log.is_done = true,
            Some(LogPosition::At { file, offset }) => {
                let is_there = |(_, it): &(_, File)| file_number(it).is_ok_and(|it| it == file);
                let index = older.iter().position(is_there).ok_or(SearchError::Cursor)?;
                older.truncate(index + 1);
                let (path, file) = older.pop().ok_or(SearchError::Cursor)?;
                if file_length(&path, &file)? < offset {
                    return Err(SearchError::Cursor);
                }
                log.begin(path, file, offset, filter)?;
            }
        }
        log.older = older;
        Ok(log)
    }

    /// Begins to read a file backwards, from this offset or from the end of the period.
    fn begin(
        &mut self,
        path: PathBuf,
        mut file: File,
        offset: u64,
        filter: &QueryFilter,
    ) -> Result<(), SearchError> {
        let begun = file_number(&file).and_then(|number| {
            let start = skip_later_lines(&mut file, offset, filter)?;
            Ok((number, start))
        });
        match begun {
            Err(error) => Err(SearchError::File(path, error)),
            Ok((number, start)) => {
                self.searched_bytes += start.read_bytes;
                self.current = Some((path, number, BackwardLines::new(file, start.offset)));
                Ok(())
            }
        }
    }

    /// Finds the next line, until the deadline.
    fn find(&mut self, filter: &QueryFilter, deadline: Instant) -> Result<(), SearchError> {
        while !self.is_done && self.found.is_none() {
            let Some((path, _, lines)) = &mut self.current else {
                match self.older.pop() {
                    None => self.is_done = true,
                    // The file was last written before the earliest time.
                    Some((_, file)) if filter.is_before(&file) => {}
                    Some((path, file)) => {
                        let length = file_length(&path, &file)?;
                        self.begin(path, file, length, filter)?;
                    }
                }
                continue;
            };
            for _ in 0..LINES_PER_LOOK {
                let end = lines.offset();
                let next = match lines.next_line() {
                    Ok(next) => next,
                    Err(error) => return Err(SearchError::File(path.clone(), error)),
                };
                let Some((offset, line)) = next else {
                    self.current = None;
                    self.is_done = self.older.is_empty();
                    break;
                };
                self.searched_bytes += end - offset;
                self.old_lines += 1;
                let may_match = filter.may_match(line);
                let is_looked_at = may_match || self.old_lines.is_multiple_of(AGE_SAMPLE);
                if is_looked_at && !filter.is_old(line) {
                    self.old_lines = 0;
                }
                if self.old_lines >= MAX_OLD_LINES {
                    self.is_done = true;
                    break;
                }
                if may_match
                    && let Some(fields) = LineFields::parse(line)
                    && filter.matches(&fields)
                {
                    self.found = Some(FoundLine::new(line, &fields, end));
                    break;
                }
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        Ok(())
    }

    fn found_time(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.time.as_deref().unwrap_or_default())
    }

    /// Where the search continues.
    fn place(&self) -> LogPosition {
        if let Some((_, file, lines)) = &self.current {
            let offset = self.found.as_ref().map_or_else(|| lines.offset(), |found| found.end);
            return LogPosition::At { file: *file, offset };
        }
        match self.older.last().filter(|_| !self.is_done) {
            None => LogPosition::End,
            Some((_, file)) => match (file_number(file), file.metadata()) {
                (Ok(number), Ok(about)) => LogPosition::At { file: number, offset: about.len() },
                _ => LogPosition::End,
            },
        }
    }
}

impl FoundLine {
    fn new(line: &[u8], fields: &LineFields<'_>, end: u64) -> Self {
        let time = fields.time.as_deref().map(str::to_owned);
        Self { line: String::from_utf8_lossy(line).into(), time, end }
    }
}

fn file_length(path: &Path, file: &File) -> Result<u64, SearchError> {
    match file.metadata() {
        Ok(about) => Ok(about.len()),
        Err(error) => Err(SearchError::File(path.to_owned(), error)),
    }
}
