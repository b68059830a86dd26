//! Exceptions of scripts, with their positions.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// Maximum size of a script's text that is shown, in bytes.
const MAX_SHOWN_BYTES: usize = 2000;

/// An exception of a script.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ScriptError {
    /// The kind of error, such as `TypeError`; empty for a value that is not an error.
    pub name: String,
    /// The message.
    pub message: String,
    /// The kind of fault that the script requests.
    pub kind: Option<String>,
    /// Structured details.
    pub data: Option<Value>,
    /// The stack trace.
    pub stack: String,
    /// The line of the file, counted from one.
    #[serde(skip)]
    pub line: Option<usize>,
    /// The column in that line, counted from one.
    #[serde(skip)]
    pub column: Option<usize>,
}

impl ScriptError {
    /// A failure that the script did not throw itself.
    pub(super) fn limit_exceeded(message: impl Into<String>) -> Box<Self> {
        Box::new(Self { name: "Limit".to_owned(), message: message.into(), ..Self::default() })
    }

    /// Reads the engine's JSON report, with its position in the file of this name.
    pub(super) fn from_json(text: &str, file: &str) -> Box<Self> {
        let error: Self = serde_json::from_str(text).unwrap_or_default();
        Box::new(error.with_location(file))
    }

    /// Adds the position that the stack names.
    pub(super) fn with_location(mut self, file: &str) -> Self {
        (self.line, self.column) = location_in_stack(&self.stack, file);
        self.message = shorten(&self.message);
        self.stack = shorten(&self.stack);
        self
    }

    /// Whether the script threw deliberately: `throw new Error("…")` refuses a call, any other exception is a bug.
    pub fn is_deliberate(&self) -> bool {
        matches!(self.name.as_str(), "Error" | "")
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_deliberate() && self.name != "Limit" {
            write!(formatter, "{}: ", self.name)?;
        }
        formatter.write_str(&self.message)
    }
}

/// The first position in the file that a stack names.
fn location_in_stack(stack: &str, file: &str) -> (Option<usize>, Option<usize>) {
    let named = format!("{file}:");
    let Some(offset) = stack.find(&named) else { return (None, None) };
    let rest = &stack[offset + named.len()..];
    let rest = rest.split([')', '\n']).next().unwrap_or_default();
    let mut numbers = rest.split(':').map(|number| number.trim().parse().ok());
    (numbers.next().flatten(), numbers.next().flatten())
}

pub(super) fn shorten(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_SHOWN_BYTES)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_position_in_the_file_counts() {
        let stack =
            "    at parse (native)\n    at request (guard.js:12:9)\n    at x (guard.js:1:2)\n";
        assert_eq!(location_in_stack(stack, "guard.js"), (Some(12), Some(9)));
        assert_eq!(location_in_stack("    at guard.js:3:5\n", "guard.js"), (Some(3), Some(5)));
        assert_eq!(location_in_stack("    at other.js:3:5\n", "guard.js"), (None, None));
    }
}
