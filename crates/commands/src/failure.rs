//! The failure of a command, and its exit code.

use std::process::ExitCode;
use std::{fmt, io};

use creole::auth::AuthError;
use creole::client::oauth::StoreError;
use creole_config::wordpress::{MISSING_SUPPORT, MISSING_SUPPORT_HELP};
use creole_config::{ConfigError, RunError};
use creole_tools::skills::FileError;

/// The maximum number of names in an error message.
const MAX_LISTED_NAMES: usize = 12;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is invalid.
    Config(ConfigError),
    /// The command line or the input of the user is invalid.
    Usage(String),
    /// A file of users or keys is invalid.
    Credentials(AuthError),
    /// A file of users or keys could not be changed.
    Passwd(String),
    /// Served files are invalid.
    Files(Vec<FileError>),
    /// The output could not be written.
    Output(io::Error),
    /// The command was refused for a reason that the user can change.
    Refused(String),
    /// The server could not be started, or failed.
    Serve(String),
    /// Another server is unreachable or returned an error.
    Call(String),
}

impl Failure {
    /// The command needs WordPress, which this program was built without.
    pub(crate) fn without_wordpress() -> Self {
        Self::Usage(format!("{MISSING_SUPPORT}; {MISSING_SUPPORT_HELP}"))
    }

    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_)
            | Self::Usage(_)
            | Self::Credentials(_)
            | Self::Files(_)
            | Self::Refused(_) => ExitCode::from(2),
            Self::Output(_) | Self::Passwd(_) | Self::Serve(_) | Self::Call(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(formatter),
            Self::Files(problems) => {
                let lines: Vec<String> =
                    problems.iter().map(|problem| format!("error: {problem}")).collect();
                formatter.write_str(&lines.join("\n"))
            }
            Self::Output(error) => write!(formatter, "error: cannot write to stdout: {error}"),
            Self::Credentials(error) => write!(formatter, "error: {error}"),
            Self::Usage(message)
            | Self::Passwd(message)
            | Self::Refused(message)
            | Self::Serve(message)
            | Self::Call(message) => write!(formatter, "error: {message}"),
        }
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        Self::Credentials(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            // The user must change the file or its mode.
            StoreError::NotPrivate { .. } | StoreError::Unreadable { .. } => {
                Self::Refused(error.to_string())
            }
            _ => Self::Call(error.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Credentials(error) => Self::Credentials(error),
            RunError::Refused(message) => Self::Refused(message),
            RunError::Serve(message) => Self::Serve(message),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

/// The most similar name, or the known names.
pub(crate) fn suggestion(name: &str, known: &[&str]) -> String {
    match creole_config::nearest(name, known.iter().copied()) {
        Some(likely) => format!("did you mean `{likely}`?"),
        None if known.len() <= MAX_LISTED_NAMES => {
            let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            format!("it has {}", names.join(", "))
        }
        None => format!("it has {} others; `creole list` lists them", known.len()),
    }
}
