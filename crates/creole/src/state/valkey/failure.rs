//! Errors of a server as errors of the state.

use std::sync::Arc;

use redis::{ErrorKind, RedisError};

use super::super::StateError;

/// Codes of errors after which nothing was changed, and which may pass.
const TEMPORARY_CODES: [&str; 14] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOPERM",
    "NOREPLICAS",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "WRONGPASS",
];

/// Codes of errors after which another server must be looked for.
const MOVED_CODES: [&str; 4] = ["ASK", "MASTERDOWN", "MOVED", "READONLY"];

/// The reason why a connection could not be used.
#[derive(Debug, Clone)]
pub(super) enum ConnectFailure {
    /// It may work later.
    Unreachable(String),
    /// It does not work before the configuration is changed.
    Refused(String),
}

impl ConnectFailure {
    pub(super) fn unreachable(error: impl ToString) -> Self {
        Self::Unreachable(error.to_string())
    }

    /// The failure of a command that prepares a connection.
    pub(super) fn from_setup(error: &RedisError) -> Self {
        let text = error.to_string();
        let is_refused = error.kind() == ErrorKind::AuthenticationFailed
            || ["WRONGPASS", "NOAUTH", "invalid password", "Authentication", "AUTH failed"]
                .iter()
                .any(|code| text.contains(code));
        if is_refused {
            Self::Refused(format!(
                "it refused the user or the password; set the right password ({text})"
            ))
        } else if text.contains("DENIED") {
            Self::Refused(format!("it is in protected mode; give it a password ({text})"))
        } else {
            Self::Unreachable(text)
        }
    }

    pub(super) fn problem(&self) -> &str {
        match self {
            Self::Unreachable(problem) | Self::Refused(problem) => problem,
        }
    }
}

/// The error of an operation that got an error instead of a result.
pub(super) fn operation_error(store: &Arc<str>, error: &RedisError) -> StateError {
    let is_temporary = has_code(error, &TEMPORARY_CODES);
    let problem = match error.code() {
        Some("MOVED" | "ASK") => "the server is a node of a cluster that does not have the keys; \
                                  set cluster = true if it is not set"
            .into(),
        _ => error.to_string().into(),
    };
    StateError::Unavailable { store: Arc::clone(store), problem, is_unknown: !is_temporary }
}

/// Whether another server has to be looked for.
pub(super) fn needs_other_server(error: &RedisError) -> bool {
    has_code(error, &MOVED_CODES)
}

/// Old servers put the code of an error inside a script into its text.
fn has_code(error: &RedisError, codes: &[&str]) -> bool {
    if error.code().is_some_and(|code| codes.contains(&code)) {
        return true;
    }
    error
        .detail()
        .is_some_and(|detail| codes.iter().any(|code| detail.contains(&format!("-{code} "))))
}
