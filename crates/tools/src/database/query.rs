//! Predefined queries: placeholders become parameters, and a query is a single reading statement. Its rows are JSON.

use creole::proto::wire::{Raw, hex, quote};

use super::DatabaseAddress;
use crate::recipe::template::{Template, TemplatePart};

/// A query with named parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    template: Template,
    /// The parameters in order.
    names: Vec<String>,
}

impl Query {
    /// Parses a query with placeholders such as `{name}`.
    ///
    /// # Errors
    /// When a placeholder is in a position where it cannot be a parameter; describes the correction.
    pub fn new(template: Template) -> Result<Self, String> {
        let mut context = SqlContext::Code;
        let mut names: Vec<String> = Vec::new();
        for part in template.parts() {
            match part {
                TemplatePart::Text(text) => context = context.advance(text),
                TemplatePart::Argument(name) if context == SqlContext::Code => {
                    if !names.contains(name) {
                        names.push(name.clone());
                    }
                }
                TemplatePart::Argument(name) => {
                    return Err(match context {
                        SqlContext::Quotes(_) => format!(
                            "`{{{name}}}` is in quotes, where it is not a parameter; write it \
                                outside of quotes, as in `'%' || {{{name}}} || '%'`"
                        ),
                        _ => format!("`{{{name}}}` is in a comment; remove it"),
                    });
                }
            }
        }
        match context {
            SqlContext::Quotes(_) => Err("a quote is not closed".to_owned()),
            _ => Ok(Self { template, names }),
        }
    }

    /// The names of its parameters in order.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The query for the database at this address, without a final semicolon.
    pub(super) fn sql(&self, address: &DatabaseAddress) -> String {
        let sign = match address {
            DatabaseAddress::Sqlite(_) => '?',
            DatabaseAddress::Postgres(_) => '$',
        };
        let number =
            |name: &str| self.names.iter().position(|text| text == name).unwrap_or_default() + 1;
        let filled = self.template.fill(|name| Some(format!("{sign}{}", number(name))));
        let filled = filled.unwrap_or_default();
        filled.trim_end().trim_end_matches(';').to_owned()
    }
}

/// The lexical context of a position in a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SqlContext {
    Code,
    Quotes(char),
    Line,
    Comment,
}

impl SqlContext {
    /// The context after a text that begins in this one.
    fn advance(self, text: &str) -> Self {
        let mut context = self;
        let mut letters = text.chars().peekable();
        while let Some(character) = letters.next() {
            let next = letters.peek().copied();
            context = match (context, character, next) {
                (Self::Code, '\'' | '"' | '`', _) => Self::Quotes(character),
                (Self::Code, '-', Some('-')) => Self::Line,
                (Self::Code, '/', Some('*')) => Self::Comment,
                (Self::Quotes(quote), _, _) if quote == character => Self::Code,
                (Self::Line, '\n', _) => Self::Code,
                (Self::Comment, '*', Some('/')) => {
                    letters.next();
                    Self::Code
                }
                (context, _, _) => context,
            };
        }
        context
    }
}

/// The rows of a result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Each row as a JSON object.
    pub(crate) rows: Vec<String>,
    /// Whether there are more rows.
    pub(crate) has_more: bool,
}

impl Rows {
    /// All rows as a JSON array.
    pub(crate) fn to_json_array(&self) -> String {
        format!("[{}]", self.rows.join(","))
    }

    /// The rows and whether there are more, as one object.
    pub(crate) fn to_json(&self) -> Option<Raw> {
        Raw::parse(&format!(r#"{{"rows":{},"more":{}}}"#, self.to_json_array(), self.has_more)).ok()
    }
}

/// A text as JSON.
pub(crate) fn quote_json(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// Bytes as text, in PostgreSQL's hexadecimal format.
pub(crate) fn to_postgres_hex(bytes: &[u8]) -> String {
    String::from("\\x") + &hex(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn query(text: &str) -> Result<Query, String> {
        Query::new(Template::parse(text).unwrap())
    }

    #[test]
    fn placeholders_become_numbered_parameters() {
        let query = query("SELECT * FROM t WHERE a = {a} OR b = {b} OR c = {a};\n").unwrap();
        assert_eq!(query.names(), ["a", "b"]);
        let file = DatabaseAddress::Sqlite("x".into());
        assert_eq!(query.sql(&file), "SELECT * FROM t WHERE a = ?1 OR b = ?2 OR c = ?1");
        let server =
            DatabaseAddress::parse("postgres://a@localhost/b", None, Path::new("")).unwrap();
        assert_eq!(query.sql(&server), "SELECT * FROM t WHERE a = $1 OR b = $2 OR c = $1");
    }

    #[test]
    fn a_placeholder_that_would_be_no_parameter_is_refused() {
        for (text, reason) in [
            ("SELECT '%{a}%'", "in quotes"),
            ("SELECT \"{a}\"", "in quotes"),
            ("SELECT 'it''s {a}'", "in quotes"),
            ("SELECT 1 -- {a}\n", "in a comment"),
            ("SELECT /* {a} */ 1", "in a comment"),
            ("SELECT 'open", "not closed"),
        ] {
            let output = query(text).unwrap_err();
            assert!(output.contains(reason), "{text}: {output}");
        }
        for text in
            ["SELECT 'it''s', {a}", "SELECT 1 -- x\n, {a}", "SELECT 1 /* ' */ + {a}", "SELECT -{a}"]
        {
            assert_eq!(query(text).unwrap().names(), ["a"], "{text}");
        }
    }
}
