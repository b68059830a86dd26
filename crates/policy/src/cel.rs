//! Expressions of rules, in CEL (the Common Expression Language) without messages, bytes, types and optional values.
//!
//! The cost of an evaluation is bounded: an expression has at most 4 KiB and a limited depth, comprehensions do not
//! nest, regular expressions and time zones are literals that are prepared at load, and every evaluation has a budget
//! of steps. Names of variables, members and functions are checked at load, so a misspelled one is no silent refusal.

mod ast;
mod evaluate;
mod functions;
mod lexer;
mod macros;
mod parser;
mod references;
mod time;
mod value;

use std::fmt;

use ast::Expr;
pub(crate) use evaluate::{EvaluationInput, InputItem};
pub use references::References;
pub use time::Moment;

/// The maximum length of an expression in bytes.
const MAX_LENGTH: usize = 4096;

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    root: Expr,
    references: References,
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// With the reason, and the position where it was found.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > MAX_LENGTH {
            let message = format!("the expression is longer than {MAX_LENGTH} bytes");
            return Err(ExpressionError { message, offset: 0 });
        }
        let root = parser::parse(text)?;
        let references = References::of(&root)?;
        Ok(Self { root, references })
    }

    /// What the expression depends on.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Whether the expression is true for this input.
    pub(crate) fn is_true(&self, input: &EvaluationInput<'_>) -> Result<bool, EvaluationError> {
        evaluate::is_true(&self.root, input)
    }
}

/// Why an expression is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// A sentence for people.
    pub message: String,
    /// The position in the expression, in bytes.
    pub offset: usize,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ExpressionError {}

/// Why an evaluation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EvaluationError(pub(crate) String);

impl EvaluationError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
