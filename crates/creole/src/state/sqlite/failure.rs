//! Why a job failed, and its error for the user of the state.

use std::path::Path;
use std::sync::Arc;

use rusqlite::ErrorCode;

use super::super::StateError;
use super::super::error::StateFileError;

/// Why a job failed.
#[derive(Debug, Clone)]
pub(super) enum SqliteFailure {
    State(StateError),
    Sqlite(Arc<rusqlite::Error>),
}

impl From<rusqlite::Error> for SqliteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl From<StateError> for SqliteFailure {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl SqliteFailure {
    pub(super) fn into_state_error(self, path: &Arc<Path>) -> StateError {
        let error = match self {
            Self::State(error) => return error,
            Self::Sqlite(error) => error,
        };
        let reason = error.to_string().into();
        let problem = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                StateFileError::Damaged(reason)
            }
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StateFileError::Inaccessible(reason)
            }
            Some(ErrorCode::DiskFull) => StateFileError::DiskFull(reason),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StateFileError::Busy(reason)
            }
            _ => StateFileError::Other(reason),
        };
        StateError::File { path: Arc::clone(path), error: problem }
    }
}
