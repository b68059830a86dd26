//! Why a statement or a connection failed, and what that means for the change.

use std::error::Error as _;
use std::fmt::Write as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

/// Why a statement failed.
#[derive(Debug, Clone)]
pub(super) enum StatementFailure {
    /// Nothing was changed, because the server refused it.
    Refused(String),
    /// Nothing was changed, because the schema is not as the connection found it.
    WrongSchema(String),
    /// Nothing was changed, because of another transaction. The same statement may succeed now.
    Conflict(String),
    /// It was sent and not answered.
    Unanswered(String),
}

impl StatementFailure {
    pub(super) fn of(error: &Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            return Self::Unanswered(describe(error));
        };
        let problem = describe_answer(answer);
        let code = answer.code();
        if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
            Self::Conflict(problem)
        } else if [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN].contains(code) {
            // The server ended the connection, perhaps between the commit and its answer.
            Self::Unanswered(problem)
        } else if ["3F", "42"].iter().any(|class| code.code().starts_with(class)) {
            Self::WrongSchema(problem)
        } else {
            Self::Refused(problem)
        }
    }
}

/// Why no connection was opened.
#[derive(Debug, Clone)]
pub(super) enum ConnectFailure {
    /// The configuration is wrong, so it fails until the configuration changes.
    Misconfigured(String),
    /// The server cannot be reached, or cannot serve now.
    Unreachable(String),
}

impl ConnectFailure {
    pub(super) fn of(error: &Error) -> Self {
        let Some(answer) = error.as_db_error() else {
            let problem = describe(error);
            // The client reports these kinds in its text only.
            let is_permanent =
                ["error performing TLS handshake", "invalid configuration", "authentication error"]
                    .iter()
                    .any(|kind| problem.starts_with(kind));
            return if is_permanent {
                Self::Misconfigured(problem)
            } else {
                Self::Unreachable(problem)
            };
        };
        let problem = describe_answer(answer);
        // The classes for authorization, unknown databases, and missing rights or objects.
        let is_permanent =
            ["28", "3D", "3F", "42"].iter().any(|class| answer.code().code().starts_with(class));
        if is_permanent { Self::Misconfigured(problem) } else { Self::Unreachable(problem) }
    }

    pub(super) fn problem(&self) -> &str {
        match self {
            Self::Misconfigured(problem) | Self::Unreachable(problem) => problem,
        }
    }
}

/// The message of the server with its code. Details are left out, because they may quote values.
fn describe_answer(answer: &DbError) -> String {
    format!("{} (SQLSTATE {})", answer.message(), answer.code().code())
}

fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing into a text does not fail.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}
