//! Errors of invalid skills.

use std::error::Error;
use std::fmt;

/// Why a skill is rejected: the position, the error and the correct form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillError {
    /// The file inside the skill; `None` if the error concerns the whole skill.
    pub file: Option<String>,
    /// The line number, starting at one.
    pub line: Option<usize>,
    /// The error.
    pub message: String,
    /// The correct form.
    pub help: Option<String>,
}

impl SkillError {
    pub(crate) fn new(file: &str, message: impl Into<String>) -> Self {
        Self { file: Some(file.to_owned()), ..Self::whole_skill(message) }
    }

    /// An error about the whole skill.
    pub(crate) fn whole_skill(message: impl Into<String>) -> Self {
        Self { file: None, line: None, message: message.into(), help: None }
    }

    #[must_use]
    pub(crate) fn line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for SkillError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(formatter, "{file}:")?;
            if let Some(line) = self.line {
                write!(formatter, "{line}:")?;
            }
            formatter.write_str(" ")?;
        }
        formatter.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(formatter, "; {help}"),
            None => Ok(()),
        }
    }
}

impl Error for SkillError {}
