//! The front matter of a Markdown file: the part of YAML that every reader reads alike.
//!
//! Of a skill, a client compares what it finds in the file with what the server tells of it (SEP-2640, frontmatter
//! verification). So a value that readers of YAML 1.1 and of YAML 1.2 take for different things is refused and not
//! guessed at, and so is what front matter has no use for: anchors, tags, merged keys, collections and quotations
//! of several lines. Mappings, lists, `|` and `>` texts, quotations and plain values are read.

mod block;
mod flow;
mod lines;
mod scalar;
mod text;

use serde::{Serialize, Serializer};
use serde_json::Value;

use lines::Reader;

/// The longest front matter, in bytes.
const LONGEST: usize = 64 * 1024;
/// How deep lists and mappings may be inside of one another.
const DEEPEST: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
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
pub(crate) type Members = Vec<(String, Node)>;

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
pub struct Wrong {
    /// The line, from one.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub help: String,
}

impl Wrong {
    fn new(line: usize, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, what: what.into(), help: help.into() }
    }
}

/// A text and what its front matter says.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<'a> {
    /// The members of the front matter; none if there is no front matter.
    pub members: serde_json::Map<String, Value>,
    /// The text after it.
    pub body: &'a str,
    /// The number of the body's first line, from one.
    pub line: usize,
}

impl<'a> Document<'a> {
    /// Reads a text, which may begin with front matter between two lines `---`.
    ///
    /// # Errors
    /// When the front matter has no end, or cannot be read alike by every reader.
    pub fn read(text: &'a str) -> Result<Self, Wrong> {
        let first = text.split('\n').next().unwrap_or_default();
        if first.strip_suffix('\r').unwrap_or(first) != "---" {
            return Ok(Self { members: serde_json::Map::new(), body: text, line: 1 });
        }
        let reader = Reader::of(text)?;
        // The two lines `---` are not among those of the reader.
        let above = reader.lines.len() + 2;
        let body = text.splitn(above + 1, '\n').nth(above).unwrap_or_default();
        let members = members(reader)?;
        let value = serde_json::to_value(Node::Map(members));
        let Ok(Value::Object(members)) = value else {
            return Err(Wrong::new(1, "the front matter is no mapping", "write `key: value`"));
        };
        Ok(Self { members, body, line: above + 1 })
    }
}

/// Reads the front matter that a text begins with.
pub(crate) fn read(text: &str) -> Result<Members, Wrong> {
    members(Reader::of(text)?)
}

fn members(mut reader: Reader<'_>) -> Result<Members, Wrong> {
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
