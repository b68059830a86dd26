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
    /// Other writers were faster at every attempt.
    Contended,
    /// The store on the network did not answer, or cannot serve requests now.
    Unavailable {
        /// The address of the store, without credentials.
        store: Arc<str>,
        /// The problem.
        problem: Arc<str>,
        /// Whether a change may have happened all the same: it was sent, and no response came.
        is_unknown: bool,
    },
    /// The record was written in a format that this version does not read. It is left as it is.
    UnknownFormat {
        /// The number of its format.
        found: u8,
        /// The oldest format that this version reads.
        oldest: u8,
        /// The newest format that this version reads.
        newest: u8,
    },
    /// The store on the network cannot be used before its settings or ours are changed.
    Misconfigured {
        /// The address of the store, without credentials.
        store: Arc<str>,
        /// What is wrong, and what to do.
        problem: Arc<str>,
    },
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

impl StateError {
    /// Whether the same operation may succeed later: when the state is reached again, or has room again.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unavailable { .. }
            | Self::Full { .. }
            | Self::Contended
            | Self::UnknownFormat { .. } => true,
            Self::File { error, .. } => {
                matches!(error, StateFileError::Busy(_) | StateFileError::DiskFull(_))
            }
            _ => false,
        }
    }

    /// Whether the change may have happened. After any other error it has not.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unavailable { is_unknown: true, .. })
    }
}

impl Error for StateError {}

impl fmt::Display for StateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { kind: description, bytes, max } => {
                write!(formatter, "{description} has {bytes} bytes; the limit is {max}")
            }
            Self::RetentionTooLong { wanted, max } => {
                write!(formatter, "a log of {wanted} entries was requested; the limit is {max}")
            }
            Self::Full { kind: description, max } => write!(
                formatter,
                "the state is full: it has {max} {description}; remove some, set their lifetime or \
                    raise the limit"
            ),
            Self::Trimmed { resume_after } => write!(
                formatter,
                "the requested log entries no longer exist; resume after number {resume_after}"
            ),
            Self::File { path, error: problem } => problem.explain(path, formatter),
            Self::Stopped => formatter.write_str("the worker of the state file has ended"),
            Self::Contended => formatter
                .write_str("too many requests change the same value at the same time; try again"),
            Self::UnknownFormat { found, oldest, newest } => write!(
                formatter,
                "another version wrote the record: its format is {found}, and this version reads \
                    {oldest} to {newest}; update all replicas, one version at a time"
            ),
            Self::Misconfigured { store, problem } => {
                write!(formatter, "the state store {store} cannot be used: {problem}")
            }
            Self::Unavailable { store, problem, is_unknown } => {
                let consequence = if *is_unknown {
                    "the change may have happened"
                } else {
                    "nothing was changed; try again"
                };
                write!(
                    formatter,
                    "the state store {store} is unavailable: {problem}; {consequence}"
                )
            }
        }
    }
}

impl StateFileError {
    fn explain(&self, path: &Path, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = path.display();
        match self {
            Self::Newer { found, known } => write!(
                formatter,
                "the state file {path} was written by a newer version (its schema is {found}, \
                    this version supports {known}) and was not changed; update this program or \
                    use another file"
            ),
            Self::Foreign => write!(
                formatter,
                "{path} is a file of another program and was not changed; use another file"
            ),
            Self::Damaged(reason) => write!(
                formatter,
                "{path} is damaged or not a state file, and was not changed; restore it from a \
                    backup or move it away ({reason})"
            ),
            Self::Inaccessible(reason) => write!(
                formatter,
                "cannot open or write the state file {path}; make it and its directory writable \
                    or use another file ({reason})"
            ),
            Self::DiskFull(reason) => write!(
                formatter,
                "there is no space left for the state file {path}; nothing was changed, free some space \
                 and try again ({reason})"
            ),
            Self::Busy(reason) => write!(
                formatter,
                "another process has locked the state file {path}; nothing was changed, try \
                    again ({reason})"
            ),
            Self::Other(reason) => write!(formatter, "the state file {path} failed: {reason}"),
        }
    }
}
