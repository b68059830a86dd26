//! Why a command did not do what it was asked to do.

use std::process::ExitCode;
use std::{fmt, io};

use creole::auth::AuthError;
use creole_gateway::ConfigError;
use creole_tools::skills::FileError;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The configuration is wrong.
    Config(ConfigError),
    /// What is on the command line or typed cannot be used.
    Usage(String),
    /// A file of users or keys is wrong.
    Credentials(AuthError),
    /// A file of users or keys could not be changed.
    Passwd(String),
    /// Files that are served are wrong.
    Files(Vec<FileError>),
    /// The answer could not be written.
    Output(io::Error),
    /// What was asked for is not done, for a reason that the person can change.
    Refused(String),
    /// The server could not be started, or broke down.
    Serve(String),
    /// Another server could not be reached, or did not do what it was asked to do.
    Call(String),
}

impl Failure {
    /// What the process ends with.
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
            Self::Output(error) => write!(formatter, "error: stdout cannot be written: {error}"),
            Self::Credentials(error) => write!(formatter, "error: {error}"),
            Self::Usage(what)
            | Self::Passwd(what)
            | Self::Refused(what)
            | Self::Serve(what)
            | Self::Call(what) => write!(formatter, "error: {what}"),
        }
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        Self::Credentials(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}
