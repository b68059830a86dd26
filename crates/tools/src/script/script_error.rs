//! What a script threw, and where.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// How much of a text of a script is told.
const MAX_SHOWN_BYTES: usize = 2000;

/// What a script threw.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ScriptError {
    /// What kind of error it is, such as `TypeError`; nothing for a value that is no error.
    pub name: String,
    /// What it says.
    pub message: String,
    /// The kind of fault that the script wants to be told.
    pub kind: Option<String>,
    /// Facts for machines that it adds.
    pub data: Option<Value>,
    /// Where it was thrown, through which functions.
    pub stack: String,
    /// The line of the file, from one.
    #[serde(skip)]
    pub line: Option<usize>,
    /// The column in that line, from one.
    #[serde(skip)]
    pub column: Option<usize>,
}

impl ScriptError {
    /// A failure that is not the script's own word.
    pub(super) fn limit_exceeded(message: impl Into<String>) -> Box<Self> {
        Box::new(Self { name: "Limit".to_owned(), message: message.into(), ..Self::default() })
    }

    /// What the engine tells as JSON, with its place in the file of this name.
    pub(super) fn from_json(text: &str, file: &str) -> Box<Self> {
        let thrown: Self = serde_json::from_str(text).unwrap_or_default();
        Box::new(thrown.with_location(file))
    }

    /// The same, with the place that the stack names.
    pub(super) fn with_location(mut self, file: &str) -> Self {
        (self.line, self.column) = location_in_stack(&self.stack, file);
        self.message = shorten(&self.message);
        self.stack = shorten(&self.stack);
        self
    }

    /// Whether a script means it: `throw new Error("…")` refuses a call, all else is a mistake in the script.
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

/// The first place in the file that a stack names.
fn location_in_stack(stack: &str, file: &str) -> (Option<usize>, Option<usize>) {
    let named = format!("{file}:");
    let Some(at) = stack.find(&named) else { return (None, None) };
    let rest = &stack[at + named.len()..];
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
    fn the_first_place_in_the_file_counts() {
        let stack =
            "    at parse (native)\n    at request (guard.js:12:9)\n    at x (guard.js:1:2)\n";
        assert_eq!(location_in_stack(stack, "guard.js"), (Some(12), Some(9)));
        assert_eq!(location_in_stack("    at guard.js:3:5\n", "guard.js"), (Some(3), Some(5)));
        assert_eq!(location_in_stack("    at other.js:3:5\n", "guard.js"), (None, None));
    }
}
