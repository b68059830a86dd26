//! Errors in files.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// An error in a file or folder, and its correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, counted from one.
    pub line: Option<usize>,
    /// The column in that line, counted from one, in characters.
    pub column: Option<usize>,
    /// The error.
    pub message: String,
    /// The correction.
    pub help: Option<String>,
}

impl FileError {
    pub(crate) fn new(file: &Path, message: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            column: None,
            message: message.into(),
            help: None,
        }
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.file.display())?;
        for index in [self.line, self.column].into_iter().flatten() {
            write!(formatter, "{index}:")?;
        }
        write!(formatter, " {}", self.message)?;
        match &self.help {
            Some(help) => write!(formatter, "; {help}"),
            None => Ok(()),
        }
    }
}

impl Error for FileError {}
