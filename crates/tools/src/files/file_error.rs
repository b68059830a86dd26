//! What is wrong with a file.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong with a file or folder, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, from one.
    pub line: Option<usize>,
    /// The column in that line, from one, in characters.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
}

impl FileError {
    pub(crate) fn new(file: &Path, what: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, column: None, message: what.into(), help: None }
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
        for place in [self.line, self.column].into_iter().flatten() {
            write!(formatter, "{place}:")?;
        }
        write!(formatter, " {}", self.message)?;
        match &self.help {
            Some(help) => write!(formatter, "; {help}"),
            None => Ok(()),
        }
    }
}

impl Error for FileError {}
