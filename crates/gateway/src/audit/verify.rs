//! Checks the hash chains of audit logs.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;

use crate::audit::backward_lines::MAX_LINE;
use crate::audit::hash_chain::{ChainHash, SealedLine};
use crate::audit::log_files::group;

/// The maximum number of writers whose chains are followed.
const MAX_WRITERS: usize = 100_000;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The number of files.
    pub files: usize,
    /// The number of lines that are part of a chain.
    pub lines: u64,
    /// The number of lines before the start of a chain, which nothing protects.
    pub unchained: u64,
    /// The chains: one for each log, or one for each writer of collected lines.
    pub chains: Vec<Chain>,
    /// The first break.
    pub first_break: Option<ChainBreak>,
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The newest file of its log.
    pub file: PathBuf,
    /// The writer, if the lines name one.
    pub writer: Option<String>,
    /// The number of its lines.
    pub lines: u64,
    /// Whether its first line is there. Otherwise older lines were deleted, as the rotation does.
    pub is_whole: bool,
    /// The hash of its newest line.
    pub newest: String,
}

/// Where a chain breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBreak {
    /// The file.
    pub file: PathBuf,
    /// The number of the line, from 1. For a missing end it is the number of the last line.
    pub line: u64,
    /// What is wrong.
    pub reason: BreakReason,
}

/// Why a chain breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakReason {
    /// The line was changed.
    Changed,
    /// Lines before it are missing, or the order was changed.
    Missing,
    /// The line has no hash, although lines before it have one.
    Unsealed,
    /// A new chain starts, although lines before it belong to another one.
    Restarted,
    /// The line is not text, is too long, or has no end.
    Unreadable,
    /// The first line is not a JSON object, as the lines of an audit log are.
    NoObject,
    /// There are more writers than can be followed.
    TooManyWriters,
    /// The hash that the caller knows is in none of the files.
    UnknownHash,
}

impl fmt::Display for BreakReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Changed => "the line was changed: its hash is wrong",
            Self::Missing => "lines before it are missing, or the order was changed",
            Self::Unsealed => "the line has no hash, although lines before it have one",
            Self::Restarted => "a new chain starts here, although lines before it have another one",
            Self::Unreadable => "the line is incomplete, too long or not text",
            Self::NoObject => "the line is not a JSON object: the file is not an audit log",
            Self::TooManyWriters => "the lines have too many writers",
            Self::UnknownHash => "the expected hash is in none of the lines: the end is missing",
        })
    }
}

/// Checks the chains of these files. Rotated files may be named in any order. `expected` is the hash of a line that must
/// be there, such as one from the program's log: without it, lines that were removed from the end are not missed.
///
/// # Errors
/// When a file cannot be read.
pub fn verify(files: &[PathBuf], expected: Option<&str>) -> io::Result<Verification> {
    let mut logs = Vec::new();
    for log in group(files) {
        let open = |path: PathBuf| {
            File::open(&path).map(|file| (path.clone(), file)).map_err(|error| named(&path, &error))
        };
        // All are opened before the first is read, so that a rotation in between hides nothing.
        logs.push(log.into_iter().map(open).collect::<io::Result<Vec<_>>>()?);
    }
    let mut check = Check::new(expected);
    for log in logs {
        check.start_log();
        for (path, file) in log {
            if !check.read_file(&path, file).map_err(|error| named(&path, &error))? {
                return Ok(check.finish());
            }
        }
    }
    Ok(check.finish())
}

/// Checks the chains of lines that were collected in one place.
///
/// # Errors
/// When they cannot be read.
pub fn verify_reader(reader: impl Read, expected: Option<&str>) -> io::Result<Verification> {
    let mut check = Check::new(expected);
    check.read_file(Path::new("-"), reader)?;
    Ok(check.finish())
}

fn is_object(line: &str) -> bool {
    serde_json::from_str::<BTreeMap<String, IgnoredAny>>(line).is_ok()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

/// A running check.
struct Check<'a> {
    found: Verification,
    expected: Option<&'a str>,
    /// The newest hash of each chain of the current log, with its number.
    heads: BTreeMap<Option<String>, (ChainHash, usize)>,
    /// The place of the last line.
    last: Option<(PathBuf, u64)>,
}

impl<'a> Check<'a> {
    fn new(expected: Option<&'a str>) -> Self {
        Self { found: Verification::default(), expected, heads: BTreeMap::new(), last: None }
    }

    fn start_log(&mut self) {
        self.heads.clear();
    }

    /// Reads the lines of a file; returns whether all is well.
    fn read_file(&mut self, path: &Path, file: impl Read) -> io::Result<bool> {
        self.found.files += 1;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let most = MAX_LINE as u64 + 1;
            if Read::take(&mut reader, most).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let checked = match line.strip_suffix(b"\n").map(str::from_utf8) {
                // A crash may have cut a later line off.
                Some(Ok(text)) if number == 1 && !is_object(text) => Err(BreakReason::NoObject),
                Some(Ok(text)) => self.check_line(path, text),
                _ => Err(BreakReason::Unreadable),
            };
            if let Err(reason) = checked {
                let file = path.to_owned();
                self.found.first_break = Some(ChainBreak { file, line: number, reason });
                return Ok(false);
            }
            self.last = Some((path.to_owned(), number));
        }
        Ok(true)
    }

    fn check_line(&mut self, path: &Path, line: &str) -> Result<(), BreakReason> {
        let Some(sealed) = SealedLine::parse(line) else {
            if !self.heads.is_empty() {
                return Err(BreakReason::Unsealed);
            }
            self.found.unchained += 1;
            return Ok(());
        };
        if !sealed.is_intact() {
            return Err(BreakReason::Changed);
        }
        let writer = sealed.writer.map(str::to_owned);
        let index = match self.heads.get(&writer) {
            Some((head, index)) if *head == sealed.prev => *index,
            Some(_) if sealed.prev == ChainHash::START => return Err(BreakReason::Restarted),
            Some(_) => return Err(BreakReason::Missing),
            None if self.heads.len() >= MAX_WRITERS => return Err(BreakReason::TooManyWriters),
            None => {
                self.found.chains.push(Chain {
                    file: path.to_owned(),
                    writer: writer.clone(),
                    lines: 0,
                    is_whole: sealed.prev == ChainHash::START,
                    newest: String::new(),
                });
                self.found.chains.len() - 1
            }
        };
        let chain = &mut self.found.chains[index];
        chain.lines += 1;
        chain.newest = sealed.hash.to_string();
        if chain.file != path {
            path.clone_into(&mut chain.file);
        }
        if self.expected == Some(&*chain.newest) {
            self.expected = None;
        }
        self.heads.insert(writer, (sealed.hash, index));
        self.found.lines += 1;
        Ok(())
    }

    fn finish(mut self) -> Verification {
        if self.found.first_break.is_none() && self.expected.is_some() {
            let (file, line) = self.last.unwrap_or_default();
            let reason = BreakReason::UnknownHash;
            self.found.first_break = Some(ChainBreak { file, line, reason });
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::hash_chain::seal;

    /// The lines of a chain.
    fn chain(count: usize, writer: Option<&str>, mut prev: ChainHash) -> Vec<String> {
        let line = |number| {
            let (line, hash) = seal(&format!("{{\"n\":{number}}}"), writer, prev);
            prev = hash;
            line
        };
        (0..count).map(line).collect()
    }

    fn check(lines: &[String]) -> Verification {
        verify_reader(format!("{}\n", lines.join("\n")).as_bytes(), None).unwrap()
    }

    fn break_of(lines: &[String]) -> Option<(u64, BreakReason)> {
        check(lines).first_break.map(|it| (it.line, it.reason))
    }

    #[test]
    fn an_edited_a_removed_and_a_moved_line_are_found() {
        let lines = chain(5, None, ChainHash::START);
        assert_eq!(break_of(&lines), None);
        let mut edited = lines.clone();
        edited[2] = edited[2].replacen("{\"n\":2", "{\"n\":7", 1);
        assert_eq!(break_of(&edited), Some((3, BreakReason::Changed)));
        let removed = [&lines[..2], &lines[3..]].concat();
        assert_eq!(break_of(&removed), Some((3, BreakReason::Missing)));
        let mut moved = lines.clone();
        moved.swap(1, 2);
        assert_eq!(break_of(&moved), Some((2, BreakReason::Missing)));
        let unsealed = [&lines[..2], &["{\"n\":9}".to_owned()], &lines[2..]].concat();
        assert_eq!(break_of(&unsealed), Some((3, BreakReason::Unsealed)));
        let forged = [&lines[..2], &chain(1, None, ChainHash::START), &lines[2..]].concat();
        assert_eq!(break_of(&forged), Some((3, BreakReason::Restarted)));
    }

    #[test]
    fn a_removed_end_is_found_with_a_hash_that_is_known() {
        let lines = chain(5, None, ChainHash::START);
        let known = SealedLine::parse(&lines[4]).unwrap().hash.to_string();
        let text = |count: usize| format!("{}\n", lines[..count].join("\n"));
        assert_eq!(verify_reader(text(4).as_bytes(), None).unwrap().first_break, None);
        assert_eq!(verify_reader(text(5).as_bytes(), Some(&known)).unwrap().first_break, None);
        let found = verify_reader(text(4).as_bytes(), Some(&known)).unwrap().first_break.unwrap();
        assert_eq!((found.line, found.reason), (4, BreakReason::UnknownHash));
    }

    #[test]
    fn the_lines_of_several_writers_are_separate_chains() {
        let (one, two) = ("0000000000000001", "0000000000000002");
        let one = chain(3, Some(one), ChainHash::START);
        let two = chain(3, Some(two), ChainHash::START);
        let mixed: Vec<String> = one.iter().zip(&two).flat_map(|(a, b)| [a, b]).cloned().collect();
        let found = check(&mixed);
        assert_eq!((found.first_break.clone(), found.lines, found.chains.len()), (None, 6, 2));
        assert_eq!(found.chains[1].writer.as_deref(), Some("0000000000000002"));
        let gap = [&mixed[..2], &mixed[3..]].concat();
        assert_eq!(break_of(&gap), Some((4, BreakReason::Missing)));
    }

    #[test]
    fn lines_before_the_chain_are_counted() {
        let mut lines = vec!["{\"n\":0}".to_owned(), "{\"n\":1}".to_owned()];
        lines.extend(chain(2, None, ChainHash::START));
        let found = check(&lines);
        assert_eq!((found.unchained, found.lines, found.first_break), (2, 2, None));
    }

    #[test]
    fn rotated_files_are_one_chain_and_each_log_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let lines = chain(6, None, ChainHash::START);
        let write = |name: &str, lines: &[String]| {
            std::fs::write(path(name), format!("{}\n", lines.join("\n"))).unwrap();
        };
        write("a.log.10", &lines[1..2]);
        write("a.log.9", &lines[2..4]);
        write("a.log", &lines[4..]);
        write("b.log", &chain(2, None, ChainHash::START));
        let all = ["a.log", "a.log.10", "a.log.9", "b.log"].map(path);
        let found = verify(&all, None).unwrap();
        assert_eq!((&found.first_break, found.lines, found.files), (&None, 7, 4));
        assert_eq!(found.chains.iter().map(|it| it.is_whole).collect::<Vec<_>>(), [false, true]);
        assert_eq!(found.chains[0].file, path("a.log"));
        let found = verify(&[path("a.log"), path("a.log.10")], None).unwrap().first_break.unwrap();
        assert_eq!(
            found,
            ChainBreak { file: path("a.log"), line: 1, reason: BreakReason::Missing }
        );
        let error = verify(&[path("none.log")], None).unwrap_err();
        assert!(error.to_string().contains("none.log"), "{error}");
    }

    #[test]
    fn an_incomplete_line_and_other_bytes_are_a_break() {
        let line = chain(1, None, ChainHash::START).remove(0);
        for text in [line.into_bytes(), b"\xff\n".to_vec(), vec![b'x'; MAX_LINE + 10]] {
            let found = verify_reader(&text[..], None).unwrap().first_break.unwrap();
            assert_eq!((found.line, found.reason), (1, BreakReason::Unreadable));
        }
    }
}
