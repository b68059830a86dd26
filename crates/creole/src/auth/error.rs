//! Errors in a file of users or keys, or in a key of the configuration.

use std::fmt;
use std::path::{Path, PathBuf};

/// Invalid credentials, with the correct form. The error never shows the content of a line: it may be a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthError {
    /// The file.
    pub file: Option<PathBuf>,
    /// The line number, starting at one.
    pub line: Option<usize>,
    /// The error.
    pub message: String,
    /// The correct form.
    pub help: Option<String>,
}

impl AuthError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { file: None, line: None, message: message.into(), help: None }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(super) fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(super) fn in_file(mut self, file: &Path) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", file.display())?,
            (Some(file), None) => write!(f, "{}: ", file.display())?,
            (None, _) => {}
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AuthError {}
