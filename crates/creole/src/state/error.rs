//! Errors of a state, each with the limit or the remedy.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Why an operation on the state failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateError {
    /// A key, name, value, entry or message is longer than the limits allow.
    TooLong {
        /// The kind of text.
        kind: &'static str,
        /// Its length.
        bytes: usize,
        /// The maximum length.
        max: usize,
    },
    /// The requested retention of a log exceeds the limits.
    RetentionTooLong {
        /// The requested number of entries.
        wanted: usize,
        /// The maximum number.
        max: usize,
    },
    /// There is no room, also after expired data was deleted.
    Full {
        /// The kind of data.
        kind: &'static str,
        /// The limit.
        max: usize,
    },
    /// Requested entries were removed, so a reader that continued would miss them without noticing.
    Trimmed {
        /// The number after which no entry is missing.
        resume_after: u64,
    },
    /// The file failed.
    File {
        /// Which file.
        path: Arc<Path>,
        /// The error.
        error: StateFileError,
    },
    /// The worker thread of the file has ended, or could not be started.
    Stopped,
}

/// An error of a state file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateFileError {
    /// A newer version wrote it.
    Newer {
        /// The version of its tables.
        found: u32,
        /// The newest supported version.
        known: u32,
    },
    /// Another program wrote it.
    Foreign,
    /// It is incomplete, or not a database.
    Damaged(Arc<str>),
    /// It cannot be opened or written.
    Inaccessible(Arc<str>),
    /// There is no space left on the disk.
    DiskFull(Arc<str>),
    /// Another process locks it for too long.
    Busy(Arc<str>),
    /// Anything else.
    Other(Arc<str>),
}

impl Error for StateError {}

impl fmt::Display for StateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { kind: what, bytes, max: most } => {
                write!(formatter, "{what} has {bytes} bytes, and at most {most} are allowed")
            }
            Self::RetentionTooLong { wanted, max: most } => write!(
                formatter,
                "a log is to keep {wanted} entries, and at most {most} are allowed"
            ),
            Self::Full { kind: what, max: most } => write!(
                formatter,
                "the state is full: there are {most} {what} already; remove some, give them an age or \
                 raise the limit"
            ),
            Self::Trimmed { resume_after } => write!(
                formatter,
                "entries of the log that were asked for are gone; nothing is missing after number \
                 {resume_after}"
            ),
            Self::File { path, error: problem } => problem.explain(path, formatter),
            Self::Stopped => formatter.write_str("the work on the state's file has ended"),
        }
    }
}

impl StateFileError {
    fn explain(&self, path: &Path, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = path.display();
        match self {
            Self::Newer { found, known } => write!(
                formatter,
                "the state file {path} was written by a newer version (its schema is {found}, this \
                 version knows {known}) and was left as it is; update this program or name another file"
            ),
            Self::Foreign => write!(
                formatter,
                "{path} is a file of another program and was left as it is; name another file"
            ),
            Self::Damaged(why) => write!(
                formatter,
                "{path} is damaged or no state file, and was left as it is; restore it from a backup or \
                 move it away to start anew ({why})"
            ),
            Self::Inaccessible(why) => write!(
                formatter,
                "the state file {path} cannot be opened or written; make it and its directory writable \
                 or name another file ({why})"
            ),
            Self::DiskFull(why) => write!(
                formatter,
                "there is no space left for the state file {path}; nothing was changed, free some space \
                 and try again ({why})"
            ),
            Self::Busy(why) => write!(
                formatter,
                "another process keeps the state file {path} locked; nothing was changed, try again \
                 ({why})"
            ),
            Self::Other(why) => write!(formatter, "the state file {path} failed: {why}"),
        }
    }
}
