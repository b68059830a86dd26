//! The front matter of a `SKILL.md`: the part of YAML that every reader reads alike.
//!
//! A client compares what it finds in the file with what the server tells of it (SEP-2640, frontmatter
//! verification). So a value that readers of YAML 1.1 and of YAML 1.2 take for different things is refused and not
//! guessed at, and so is what front matter has no use for: anchors, tags, merged keys, collections and quotations
//! of several lines. Mappings, lists, `|` and `>` texts, quotations and plain values are read.

mod block;
mod flow;
mod lines;
mod scalar;
mod text;

use serde::{Serialize, Serializer};

use lines::Reader;

/// The longest front matter, in bytes.
const LONGEST: usize = 64 * 1024;
/// How deep lists and mappings may be inside of one another.
const DEEPEST: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A number, in the grammar of JSON.
    Number(serde_json::Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Members in the order in which they were written.
    Map(Members),
}

/// Members in the order in which they were written; no name comes twice.
pub(super) type Members = Vec<(String, Node)>;

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

/// What is wrong, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) help: String,
}

impl Wrong {
    fn new(line: usize, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, what: what.into(), help: help.into() }
    }
}

/// Reads the front matter that a text begins with.
pub(super) fn read(text: &str) -> Result<Members, Wrong> {
    let mut reader = Reader::of(text)?;
    let Some(first) = reader.peek() else { return Ok(Members::new()) };
    let members = reader.mapping(first.indent, 0)?;
    match reader.peek() {
        None => Ok(members),
        Some(line) => Err(line.wrong(
            "this line is indented less than the first one",
            "begin all keys of the front matter in the same column",
        )),
    }
}

#[cfg(test)]
mod tests;
