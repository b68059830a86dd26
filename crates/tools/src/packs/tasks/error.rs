//! Errors of the task store. Their messages name the file and the remedy.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use creole::ToolError;
use creole::proto::fault::{Fault, FaultKind};
use rusqlite::ErrorCode;

use crate::database;

/// An error of the task store. Deliberately not a [`std::error::Error`]: as a tool's failure it has the prefix
/// `error: `.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// The platform has no data directory.
    NoDataDirectory,
    /// The directory cannot be created.
    Directory(PathBuf, io::Error),
    /// An error of the file.
    File(PathBuf, TaskFileError),
    /// The system's random generator failed.
    Randomness(getrandom::Error),
    /// The work on the database was aborted.
    WorkerFailed,
    /// `CREOLE_TASKS_URL` is not a valid address, for this reason.
    Address(String),
    /// An error of the server.
    Server(String, database::DatabaseError),
    /// A newer version created the tables on the server.
    NewerServer { place: String, found: usize, known: usize },
    /// A character that PostgreSQL cannot store.
    NulCharacter,
}

/// An error of the file.
#[derive(Debug)]
pub(crate) enum TaskFileError {
    /// A newer version wrote it.
    Newer { found: usize, known: usize },
    /// Another program wrote it.
    Foreign,
    /// An error of SQLite.
    Sqlite(rusqlite::Error),
}

impl StoreError {
    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        Self::File(path.to_owned(), TaskFileError::Sqlite(error))
    }

    /// The message without absolute paths.
    fn redacted(&self) -> String {
        let (path, name) = match self {
            Self::Directory(path, _) => (path, "for tasks"),
            Self::File(path, _) => {
                let name = path.file_name().and_then(|name| name.to_str());
                (path, name.unwrap_or("of tasks"))
            }
            _ => return self.to_string(),
        };
        let message = self.to_string().replace(&path.display().to_string(), name);
        match path.parent().map(|folder| folder.display().to_string()) {
            // The text of SQLite or the system may contain the folder too.
            Some(folder) if folder.len() > 1 => message.replace(&folder, "its directory"),
            _ => message,
        }
    }

    /// Whether the file must be opened again after it is repaired.
    pub(crate) fn needs_reopen(&self) -> bool {
        let Self::File(_, TaskFileError::Sqlite(error)) = self else { return false };
        matches!(
            error.sqlite_error_code(),
            Some(
                ErrorCode::ReadOnly
                    | ErrorCode::CannotOpen
                    | ErrorCode::DatabaseCorrupt
                    | ErrorCode::NotADatabase
            )
        )
    }
}

impl From<StoreError> for ToolError {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::NulCharacter) {
            let fault = Fault::new(FaultKind::InvalidArguments, error.to_string());
            return Self::Fault(Box::new(fault));
        }
        // Paths are for the operator, not for callers.
        tracing::error!("{error}");
        Self::Failed(format!("error: {}", error.redacted()))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDataDirectory => {
                formatter.write_str("there is no directory for tasks; set CREOLE_DATA_DIR")
            }
            Self::Directory(path, error) => write!(
                formatter,
                "cannot create the directory {}: {error}; set CREOLE_DATA_DIR to another one",
                path.display()
            ),
            Self::File(path, failure) => failure.explain(path, formatter),
            Self::Randomness(error) => {
                write!(formatter, "the system provides no random bytes: {error}")
            }
            Self::WorkerFailed => formatter.write_str("the operation on the task file was aborted"),
            Self::Address(reason) => write!(formatter, "CREOLE_TASKS_URL: {reason}"),
            Self::Server(location, failure) => explain_server_error(location, failure, formatter),
            Self::NewerServer { place, found, known } => write!(
                formatter,
                "the tasks in {place} were stored by a newer version (its schema is {found}, \
                    this version supports {known}); update this server or use another database"
            ),
            Self::NulCharacter => formatter.write_str(
                "`/description` contains the character U+0000, which PostgreSQL does not support",
            ),
        }
    }
}

fn explain_server_error(
    location: &str,
    error: &database::DatabaseError,
    formatter: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match error {
        database::DatabaseError::Unavailable(reason) => write!(
            formatter,
            "the PostgreSQL server of the tasks, {location}, is not available: {reason}; check that it \
                runs and accepts this server, and try again"
        ),
        database::DatabaseError::QueryRejected(reason) => {
            write!(
                formatter,
                "the PostgreSQL server of the tasks, {location}, refused the query: {reason}"
            )
        }
        database::DatabaseError::TimedOut | database::DatabaseError::TooLarge(_) => write!(
            formatter,
            "the PostgreSQL server of the tasks, {location}, timed out; nothing was changed, try again"
        ),
    }
}

impl TaskFileError {
    fn explain(&self, path: &Path, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = path.display();
        let error = match self {
            Self::Newer { found, known } => {
                return write!(
                    formatter,
                    "the task file {path} was written by a newer version (its schema is {found}, \
                        this version supports {known}); update this server or set \
                        CREOLE_DATA_DIR to another directory"
                );
            }
            Self::Foreign => {
                return write!(
                    formatter,
                    "{path} is a file of another program and was not changed; move it away or \
                        set CREOLE_DATA_DIR to another directory"
                );
            }
            Self::Sqlite(error) => error,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => write!(
                formatter,
                "{path} is damaged or not a task file, and was not changed; restore it from a \
                    backup or move it away ({error})"
            ),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                write!(
                    formatter,
                    "cannot write the task file {path}; make it and its directory writable or \
                        set CREOLE_DATA_DIR to another directory ({error})"
                )
            }
            Some(ErrorCode::DiskFull) => write!(
                formatter,
                "there is no space left for the task file {path}; nothing was changed, free some space and \
                 try again ({error})"
            ),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => write!(
                formatter,
                "another process has locked the task file {path}; nothing was changed, try again \
                    ({error})"
            ),
            _ => write!(formatter, "the task file {path} failed: {error}"),
        }
    }
}
