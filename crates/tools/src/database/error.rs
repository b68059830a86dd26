//! Database errors, and their messages for callers.

use creole::ToolError;
use creole::proto::fault::{Fault, FaultKind};
use tokio_postgres::error::SqlState;

/// A database error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseError {
    /// The database is unreachable, or the connection was lost; the reason is for the log.
    Unavailable(String),
    /// The database rejected the query, for this reason.
    QueryRejected(String),
    /// The query exceeded its timeout.
    TimedOut,
    /// A single row exceeds the size limit of a result.
    TooLarge(usize),
}

impl DatabaseError {
    /// Converts an error of PostgreSQL.
    pub(crate) fn postgres(error: &tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(failure) if *failure.code() == SqlState::QUERY_CANCELED => Self::TimedOut,
            Some(failure) if is_server_error(failure.code()) => {
                Self::Unavailable(failure.message().to_owned())
            }
            Some(failure) => {
                let detail = failure.detail().map(|text| format!(" ({text})")).unwrap_or_default();
                Self::QueryRejected(format!("{}{detail}", failure.message()))
            }
            None if error.is_closed() => Self::Unavailable("the connection was lost".to_owned()),
            None => Self::Unavailable(with_causes(error)),
        }
    }

    /// Converts an error of SQLite.
    pub(crate) fn sqlite(error: &rusqlite::Error) -> Self {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Self::TimedOut,
            Some(
                ErrorCode::CannotOpen
                | ErrorCode::NotADatabase
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::PermissionDenied
                | ErrorCode::SystemIoFailure,
            ) => Self::Unavailable(error.to_string()),
            Some(ErrorCode::AuthorizationForStatementDenied) => {
                Self::QueryRejected("the database is read-only".to_owned())
            }
            _ => Self::QueryRejected(error.to_string()),
        }
    }

    /// The message for the operator.
    pub(crate) fn into_detail(self) -> String {
        match self {
            Self::Unavailable(reason) => format!("not available: {reason}"),
            Self::QueryRejected(reason) => format!("the query was refused: {reason}"),
            Self::TimedOut => "the query timed out".to_owned(),
            Self::TooLarge(max) => format!("a row has more than {max} bytes"),
        }
    }

    /// The message for callers about the database with this name. The details are logged.
    pub(crate) fn into_tool_error(self, database: &str) -> ToolError {
        match self {
            Self::Unavailable(reason) => {
                tracing::warn!("the database `{database}` is not available: {reason}");
                let detail = format!("the database `{database}` is not available; try again later");
                ToolError::Fault(Box::new(Fault::new(FaultKind::BackendUnavailable, detail)))
            }
            Self::QueryRejected(reason) => {
                ToolError::failed(format!("the database `{database}` refused the query: {reason}"))
            }
            Self::TimedOut => ToolError::failed(format!(
                "the query on the database `{database}` timed out and was cancelled"
            )),
            Self::TooLarge(max) => ToolError::failed(format!(
                "a row of the database `{database}` has more than {max} bytes; select fewer \
                    columns"
            )),
        }
    }
}

/// Whether the error concerns the server or the login, and not a query.
fn is_server_error(code: &SqlState) -> bool {
    // The classes for connections, authorization, unknown databases, resources, operator intervention and system
    // errors.
    ["08", "28", "3D", "53", "57P", "58"].iter().any(|class| code.code().starts_with(class))
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
