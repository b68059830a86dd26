//! What a script threw, and where.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

/// How much of a text of a script is told.
const SHOWN: usize = 2000;

/// What a script threw.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Thrown {
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

impl Thrown {
    /// A failure that is not the script's own word.
    pub(super) fn limit(message: impl Into<String>) -> Box<Self> {
        Box::new(Self { name: "Limit".to_owned(), message: message.into(), ..Self::default() })
    }

    /// What the engine tells as JSON, with its place in the file of this name.
    pub(super) fn read(text: &str, file: &str) -> Box<Self> {
        let thrown: Self = serde_json::from_str(text).unwrap_or_default();
        Box::new(thrown.placed(file))
    }

    /// The same, with the place that the stack names.
    pub(super) fn placed(mut self, file: &str) -> Self {
        (self.line, self.column) = place(&self.stack, file);
        self.message = shortened(&self.message);
        self.stack = shortened(&self.stack);
        self
    }

    /// Whether a script means it: `throw new Error("…")` refuses a call, all else is a mistake in the script.
    pub fn is_meant(&self) -> bool {
        matches!(self.name.as_str(), "Error" | "")
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_meant() && self.name != "Limit" {
            write!(formatter, "{}: ", self.name)?;
        }
        formatter.write_str(&self.message)
    }
}

/// The first place in the file that a stack names.
fn place(stack: &str, file: &str) -> (Option<usize>, Option<usize>) {
    let named = format!("{file}:");
    let Some(at) = stack.find(&named) else { return (None, None) };
    let rest = &stack[at + named.len()..];
    let rest = rest.split([')', '\n']).next().unwrap_or_default();
    let mut numbers = rest.split(':').map(|number| number.trim().parse().ok());
    (numbers.next().flatten(), numbers.next().flatten())
}

pub(super) fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(SHOWN)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_in_the_file_counts() {
        let stack =
            "    at parse (native)\n    at request (guard.js:12:9)\n    at x (guard.js:1:2)\n";
        assert_eq!(place(stack, "guard.js"), (Some(12), Some(9)));
        assert_eq!(place("    at guard.js:3:5\n", "guard.js"), (Some(3), Some(5)));
        assert_eq!(place("    at other.js:3:5\n", "guard.js"), (None, None));
    }
}
