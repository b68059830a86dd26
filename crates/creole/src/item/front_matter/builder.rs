//! Builds members from the events of the YAML parser. Rejects what YAML allows and front matter does not.

use granit_parser::{Event, ScalarStyle, Span, StructureStyle};

use crate::item::front_matter::{FrontMatterError, MAX_DEPTH, Members, Node, scalar};

const QUOTE: &str = "put the value in quotes";

/// A collection whose end has not been reached.
struct OpenCollection {
    collection: Collection,
    /// The line in which it starts, if it is in brackets.
    bracket: Option<usize>,
}

enum Collection {
    List(Vec<Node>),
    /// Members, and the key that waits for its value.
    Map(Members, Option<String>),
}

/// Builds a value.
pub(crate) struct MemberBuilder<'a> {
    text: &'a str,
    open: Vec<OpenCollection>,
    members: Members,
}

impl<'a> MemberBuilder<'a> {
    /// A builder for the events of this text.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, open: Vec::new(), members: Members::new() }
    }

    /// The members of the front matter.
    pub(crate) fn finish(self) -> Members {
        self.members
    }

    /// Processes the next event.
    pub(crate) fn handle_event(
        &mut self,
        event: Event<'_>,
        span: &Span,
    ) -> Result<(), FrontMatterError> {
        let line = line_of(span.start.line());
        match event {
            Event::Scalar(_, _, 1.., _)
            | Event::SequenceStart(_, 1.., _)
            | Event::MappingStart(_, 1.., _)
            | Event::Alias(_)
            | Event::UnresolvedAlias(_)
            | Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                let help = "write out the value, or put it in quotes";
                Err(FrontMatterError::new(
                    line,
                    "anchors, aliases and tags are not supported",
                    help,
                ))
            }
            Event::Scalar(text, style, ..) if self.expects_key() => {
                self.check_colon(span, line)?;
                self.key(&text, style, line)
            }
            Event::Scalar(text, style, ..) => {
                let value = self.scalar(&text, style, span, line)?;
                self.push_value(value, line)
            }
            Event::SequenceStart(style, ..) => {
                self.begin(Collection::List(Vec::new()), style, line)
            }
            Event::MappingStart(style, ..) => {
                if style == StructureStyle::Flow && !self.rest(span).starts_with('{') {
                    let description = "a list in brackets contains a key";
                    return Err(FrontMatterError::new(
                        line,
                        description,
                        "put it in braces, or put the text in quotes",
                    ));
                }
                self.begin(Collection::Map(Members::new(), None), style, line)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(line),
            _ => Ok(()),
        }
    }

    /// The text from the start of an event on.
    fn rest(&self, span: &Span) -> &'a str {
        let start = span.start.byte_offset().unwrap_or_default();
        self.text.get(start..).unwrap_or_default()
    }

    /// The text up to the start of an event.
    fn before(&self, span: &Span) -> &'a str {
        let start = span.start.byte_offset().unwrap_or_default();
        self.text.get(..start).unwrap_or_default()
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.open.last(),
            Some(OpenCollection { collection: Collection::Map(_, None), .. })
        )
    }

    /// Rejects a key after `?`, which has no colon in its line.
    fn check_colon(&self, span: &Span, line: usize) -> Result<(), FrontMatterError> {
        let before = self.before(span).trim_end_matches(' ');
        let before = before.rsplit('\n').next().unwrap_or_default();
        let is_marked =
            before == "?" || [" ?", "{?", ",?"].iter().any(|mark| before.ends_with(mark));
        let end = span.end.byte_offset().unwrap_or_default();
        let after = self.text.get(end..).unwrap_or_default().trim_start_matches(' ');
        match is_marked || !(after.starts_with(':') || self.is_in_brackets()) {
            true => Err(FrontMatterError::new(
                line,
                "a key after `?` is not supported",
                "write `key: value`",
            )),
            false => Ok(()),
        }
    }

    fn key(&mut self, text: &str, style: ScalarStyle, line: usize) -> Result<(), FrontMatterError> {
        let name = match style {
            ScalarStyle::Plain => scalar::resolve(text).ok(),
            _ => Some(Node::Text(text.to_owned())),
        };
        let Some(Node::Text(name)) = name else {
            let message = format!("the key `{text}` is not a string");
            return Err(FrontMatterError::new(line, message, "put the key in quotes"));
        };
        let Some(OpenCollection { collection: Collection::Map(members, waiting), .. }) =
            self.open.last_mut()
        else {
            return Ok(());
        };
        if members.iter().any(|(other, _)| *other == name) {
            return Err(FrontMatterError::new(
                line,
                format!("the key `{name}` is repeated"),
                "remove one of them",
            ));
        }
        *waiting = Some(name);
        Ok(())
    }

    fn scalar(
        &self,
        text: &str,
        style: ScalarStyle,
        span: &Span,
        line: usize,
    ) -> Result<Node, FrontMatterError> {
        let is_long = span.start.line() != span.end.line();
        let is_missing = span.start.index() == span.end.index();
        match style {
            ScalarStyle::Plain if is_long => {
                self.check_no_items(span)?;
                Ok(Node::Text(text.to_owned()))
            }
            ScalarStyle::Plain if is_missing && self.is_in_brackets() => {
                let help = "write `{ key: value }`, with a space after the colon";
                Err(FrontMatterError::new(line, "a value in brackets is missing", help))
            }
            ScalarStyle::Plain => {
                scalar::resolve(text).map_err(|message| FrontMatterError::new(line, message, QUOTE))
            }
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted if is_long => {
                let help =
                    "close the quote in the same line; write a text of several lines after `>-`";
                Err(FrontMatterError::new(line, "a quote is not closed", help))
            }
            ScalarStyle::Literal | ScalarStyle::Folded => {
                self.check_header(span)?;
                Ok(Node::Text(text.to_owned()))
            }
            _ => Ok(Node::Text(text.to_owned())),
        }
    }

    /// Rejects a seeming list below a plain value: YAML treats it as a part of the value.
    fn check_no_items(&self, span: &Span) -> Result<(), FrontMatterError> {
        let end = span.end.byte_offset().unwrap_or_default();
        let start = span.start.byte_offset().unwrap_or_default();
        let lines = self.text.get(start..end).unwrap_or_default().lines().enumerate().skip(1);
        for (index, line) in lines {
            let line = line.trim_matches(' ');
            if line == "-" || line.starts_with("- ") {
                let help = "write nothing after the colon of the key";
                let number = line_of(span.start.line() + index);
                return Err(FrontMatterError::new(number, "a list cannot follow a value", help));
            }
        }
        Ok(())
    }

    fn is_in_brackets(&self) -> bool {
        self.open.last().is_some_and(|open| open.bracket.is_some())
    }

    /// Rejects a number in the header of a text of several lines. The span starts behind the header.
    fn check_header(&self, span: &Span) -> Result<(), FrontMatterError> {
        let before = self.before(span).trim_end();
        let header = before.rsplit('\n').next().unwrap_or_default();
        let header = header.split(" #").next().unwrap_or_default().trim_end();
        let indicators = |character: char| matches!(character, '+' | '-' | '0'..='9');
        let mark = header.trim_end_matches(indicators);
        let has_number =
            header[mark.len()..].contains(|character: char| character.is_ascii_digit());
        if has_number && mark.ends_with(['|', '>']) {
            let help = "remove the number, and do not indent the first line of the text further than \
                    the others";
            let line = line_of(1 + before.matches('\n').count());
            return Err(FrontMatterError::new(
                line,
                "a number after `|` or `>` is not supported",
                help,
            ));
        }
        Ok(())
    }

    fn begin(
        &mut self,
        collection: Collection,
        style: StructureStyle,
        line: usize,
    ) -> Result<(), FrontMatterError> {
        if self.expects_key() {
            return Err(FrontMatterError::new(
                line,
                "a key is not a string",
                "put the key in quotes",
            ));
        }
        let is_map = matches!(collection, Collection::Map(..));
        if self.open.is_empty() && !is_map {
            return Err(not_a_mapping(line));
        }
        // The front matter itself is one level.
        if self.open.len() > MAX_DEPTH {
            return Err(too_deep(line));
        }
        let bracket = (style == StructureStyle::Flow).then_some(line);
        self.open.push(OpenCollection { collection, bracket });
        Ok(())
    }

    fn end(&mut self, line: usize) -> Result<(), FrontMatterError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        if let Some(begun) = open.bracket.filter(|begun| *begun != line) {
            let help = "close the brackets in the same line";
            return Err(FrontMatterError::new(begun, "brackets are not closed", help));
        }
        match open.collection {
            Collection::Map(members, _) if self.open.is_empty() => {
                self.members = members;
                Ok(())
            }
            Collection::Map(members, _) => self.push_value(Node::Map(members), line),
            Collection::List(items) => self.push_value(Node::List(items), line),
        }
    }

    fn push_value(&mut self, value: Node, line: usize) -> Result<(), FrontMatterError> {
        let Some(open) = self.open.last_mut() else { return Err(not_a_mapping(line)) };
        match &mut open.collection {
            Collection::List(items) => items.push(value),
            Collection::Map(members, waiting) => {
                if let Some(name) = waiting.take() {
                    members.push((name, value));
                }
            }
        }
        Ok(())
    }
}

/// The line number in the file for a line of the front matter, which follows `---`.
pub(crate) fn line_of(line: usize) -> usize {
    line + 1
}

/// The error for a collection that is nested too deeply.
pub(crate) fn too_deep(line: usize) -> FrontMatterError {
    let message = format!("the front matter is nested deeper than {MAX_DEPTH} levels");
    FrontMatterError::new(line, message, "move the nested values into a file")
}

fn not_a_mapping(line: usize) -> FrontMatterError {
    FrontMatterError::new(line, "the line has no key", "write `key: value`")
}
