//! Parses the front matter of a Markdown file: the subset of YAML that every parser reads alike.
//!
//! A client compares the front matter of a skill's file with the server's description of the skill (SEP-2640,
//! frontmatter verification). So a value that YAML 1.1 and YAML 1.2 parsers read differently is rejected and not
//! guessed. Features that front matter does not need are rejected too: anchors, tags, merged keys, and collections and
//! quotations of several lines. Mappings, lists, `|` and `>` texts, quotations and plain values are supported.

mod builder;
mod scalar;
mod source;

use granit_parser::{ErrorKind, Parser, ScanError};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::item::front_matter::builder::{MemberBuilder, line_of, too_deep};
use crate::item::front_matter::source::FrontMatterSource;

/// Maximum length of front matter in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum nesting of lists and mappings.
const MAX_DEPTH: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// A number, in the grammar of JSON.
    Number(serde_json::Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// Members in the order in which they are written.
    Map(Members),
}

/// Members in the order in which they are written, with unique names.
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

/// An error, its position and the correct form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontMatterError {
    /// The line number, starting at one.
    pub line: usize,
    /// The error.
    pub message: String,
    /// The correct form.
    pub help: String,
}

impl FrontMatterError {
    fn new(line: usize, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { line, message: message.into(), help: help.into() }
    }
}

/// A text and its front matter.
#[derive(Clone, Debug, PartialEq)]
pub struct FrontMatterDocument<'a> {
    /// The members of the front matter; none if there is no front matter.
    pub members: serde_json::Map<String, Value>,
    /// The text after it.
    pub body: &'a str,
    /// The line number of the body's first line, starting at one.
    pub line: usize,
}

impl<'a> FrontMatterDocument<'a> {
    /// Parses a text, which may start with front matter between two lines `---`.
    ///
    /// # Errors
    /// When the front matter has no end, or parsers could read it differently.
    pub fn read(text: &'a str) -> Result<Self, FrontMatterError> {
        let first = text.split('\n').next().unwrap_or_default();
        if first.strip_suffix('\r').unwrap_or(first) != "---" {
            return Ok(Self { members: serde_json::Map::new(), body: text, line: 1 });
        }
        let source = FrontMatterSource::extract(text)?;
        // The two lines `---` are not part of the source.
        let above = source.lines + 2;
        let body = text.splitn(above + 1, '\n').nth(above).unwrap_or_default();
        let members = members(source)?;
        let value = serde_json::to_value(Node::Map(members));
        let Ok(Value::Object(members)) = value else {
            return Err(FrontMatterError::new(
                1,
                "the front matter is not a mapping",
                "write `key: value`",
            ));
        };
        Ok(Self { members, body, line: above + 1 })
    }
}

/// Parses the front matter at the start of a text.
pub(crate) fn read(text: &str) -> Result<Members, FrontMatterError> {
    members(FrontMatterSource::extract(text)?)
}

fn members(source: FrontMatterSource<'_>) -> Result<Members, FrontMatterError> {
    let options = granit_parser::options! {
        strict_indentation: true,
        disallow_directives: true,
        emit_unresolved_aliases: true,
        flow_nesting_limit: MAX_DEPTH + 1,
        block_nesting_limit: MAX_DEPTH + 1,
    };
    let mut builder = MemberBuilder::new(source.text);
    for next in Parser::new_from_str_with_options(source.text, options) {
        let (event, span) = next.map_err(|error| scan_error(&error, source.lines))?;
        builder.handle_event(event, &span)?;
    }
    Ok(builder.finish())
}

/// Converts an error of the parser. A missing end is reported behind the last line.
fn scan_error(error: &ScanError, lines: usize) -> FrontMatterError {
    let line = line_of(error.marker().line().min(lines));
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(line),
        ErrorKind::MappingValueNotAllowed => {
            let description =
                "an unquoted value cannot contain a colon before a space or at its end";
            FrontMatterError::new(
                line,
                description,
                "put the value in quotes, or write it as a block after `>-`",
            )
        }
        _ => {
            let help = "put the value in quotes, or indent the keys of one level equally";
            FrontMatterError::new(line, error.info(), help)
        }
    }
}

#[cfg(test)]
mod tests;
