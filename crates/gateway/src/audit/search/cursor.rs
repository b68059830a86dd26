//! Where a search continues.

use std::fmt;
use std::fs::File;
use std::io;

/// The places in the searched logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cursor(pub(super) Vec<LogPosition>);

/// A place in one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogPosition {
    /// Before this offset of the file with this number.
    At { file: u64, offset: u64 },
    /// Nothing is left.
    End,
}

impl Cursor {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let place = |text: &str| match text.split_once('-') {
            Some((file, offset)) => {
                Some(LogPosition::At { file: number(file)?, offset: number(offset)? })
            }
            None => (text == "end").then_some(LogPosition::End),
        };
        text.split('.').map(place).collect::<Option<_>>().map(Self)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, place) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "." };
            match place {
                LogPosition::At { file, offset } => {
                    write!(formatter, "{separator}{file:x}-{offset:x}")?
                }
                LogPosition::End => write!(formatter, "{separator}end")?,
            }
        }
        Ok(())
    }
}

/// The number of a file, which it keeps when it is renamed.
#[cfg(unix)]
pub(super) fn file_number(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.ino())
}

/// The number of a file: the time of its creation.
#[cfg(not(unix))]
pub(super) fn file_number(file: &File) -> io::Result<u64> {
    let created = file.metadata()?.created()?;
    let since = created.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_a_text_and_back() {
        let cursor = Cursor(vec![LogPosition::At { file: 0x1f, offset: 0 }, LogPosition::End]);
        assert_eq!(cursor.to_string(), "1f-0.end");
        assert_eq!(Cursor::parse("1f-0.end"), Some(cursor));
        for text in ["", "-", "1-", "x-1", "1-2-3", "1-10000000000000000", "ende", "1-2."] {
            assert_eq!(Cursor::parse(text), None, "{text}");
        }
    }
}
