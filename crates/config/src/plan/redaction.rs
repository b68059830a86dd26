//! The parts of texts and data that are redacted.

use creole_gateway::layers::Redactor;
use regex::Regex;

use crate::plan::layer_environment::LayerError;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::Spanned;

/// The default replacement of redacted text.
pub(super) const REPLACEMENT: &str = "[redacted]";

pub(super) type PatternList = Option<Vec<Spanned<String>>>;

/// The parts of texts and data that are redacted. Each pattern is a regular expression, each pointer a JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactPlan {
    /// Patterns of redacted text.
    pub patterns: Vec<String>,
    /// Pointers to redacted values.
    pub pointers: Vec<String>,
    /// The replacement text.
    pub replacement: String,
}

impl RedactPlan {
    /// The redactor of this plan.
    pub(crate) fn redactor(&self) -> Result<Redactor, LayerError> {
        Redactor::new(&self.patterns, &self.pointers, &self.replacement)
            .map_err(|error| LayerError::new(error.to_string()))
    }
}

pub(super) fn patterns(values: PatternList) -> Result<Vec<String>, ConfigProblem> {
    let pattern = |Spanned { value, span }: Spanned<String>| match Regex::new(&value) {
        Ok(pattern) if pattern.is_match("") => {
            Err(ConfigProblem::new(format!("the pattern `{value}` matches the empty string"))
                .help("write a pattern that matches at least one character")
                .at(span))
        }
        Ok(_) => Ok(value),
        Err(error) => {
            let reason = error.to_string();
            let reason =
                reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(ConfigProblem::new(format!("invalid regular expression `{value}`: {reason}"))
                .at(span))
        }
    };
    values.unwrap_or_default().into_iter().map(pattern).collect()
}

pub(super) fn pointers(values: PatternList) -> Result<Vec<String>, ConfigProblem> {
    let pointer = |Spanned { value, span }: Spanned<String>| match value.starts_with('/') {
        true => Ok(value),
        false => Err(ConfigProblem::new(format!("invalid JSON pointer `{value}`"))
            .help("write a `/` before each key, such as `/user/email`")
            .at(span)),
    };
    values.unwrap_or_default().into_iter().map(pointer).collect()
}
