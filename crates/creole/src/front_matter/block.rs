//! Mappings and lists by indentation, and the plain values in them.

use super::flow;
use super::lines::{Line, Reader, begins_blank};
use super::{DEEPEST, Members, Node, Wrong, scalar, text};

/// What a plain value cannot begin with, because YAML gives it a meaning.
const INDICATORS: &[char] =
    &[',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`'];

const QUOTE: &str = "put the value in quotes";

impl<'a> Reader<'a> {
    /// The members whose names begin in this column.
    pub(super) fn mapping(&mut self, indent: usize, depth: usize) -> Result<Members, Wrong> {
        let mut members = Members::new();
        while let Some(line) = self.peek() {
            if line.indent < indent {
                break;
            }
            if line.indent > indent {
                return Err(too_far(line));
            }
            let Some((name, rest)) = key(line)? else {
                return Err(line.wrong("there is no key in this line", "write `key: value`"));
            };
            if members.iter().any(|(other, _)| *other == name) {
                let what = format!("the key `{name}` comes twice");
                return Err(line.wrong(what, "keep one of them"));
            }
            self.at += 1;
            let value = match is_nothing(rest) {
                true => self.below(indent, true, depth)?,
                false => self.value(rest, line, indent, depth)?,
            };
            members.push((name, value));
        }
        Ok(members)
    }

    fn list(&mut self, indent: usize, depth: usize) -> Result<Node, Wrong> {
        let mut items = Vec::new();
        while let Some(line) = self.peek() {
            if line.indent > indent {
                return Err(too_far(line));
            }
            if line.indent < indent || !line.is_item() {
                break;
            }
            let rest = line.text[1..].trim_start_matches([' ', '\t']);
            let offset = line.text.len() - rest.len();
            let inner = Line { indent: indent + offset, text: rest, ..line };
            let item = if is_nothing(rest) {
                self.at += 1;
                self.below(indent, false, depth)?
            } else if inner.is_item() || key(inner)?.is_some() {
                // What follows the dash is the first line of a mapping or list of its own.
                self.lines[self.at] = inner;
                self.block(inner, indent, depth + 1)?
            } else {
                self.at += 1;
                self.value(rest, line, indent, depth)?
            };
            items.push(item);
        }
        Ok(Node::List(items))
    }

    /// The value of a key or an item that has nothing in its own line.
    fn below(&mut self, indent: usize, is_member: bool, depth: usize) -> Result<Node, Wrong> {
        match self.peek() {
            Some(next) if next.indent > indent => self.block(next, indent, depth + 1),
            // The items of a member's list may stand right below its name.
            Some(next) if is_member && next.indent == indent && next.is_item() => {
                self.list(indent, depth + 1)
            }
            _ => Ok(Node::Null),
        }
    }

    /// What begins with this line, the next one.
    fn block(&mut self, first: Line<'a>, parent: usize, depth: usize) -> Result<Node, Wrong> {
        if depth > DEEPEST {
            let what = format!("this is nested deeper than {DEEPEST} levels");
            return Err(first.wrong(what, "front matter is flat; move the rest into a file"));
        }
        if first.is_item() {
            return self.list(first.indent, depth);
        }
        if key(first)?.is_some() {
            return self.mapping(first.indent, depth).map(Node::Map);
        }
        self.at += 1;
        self.value(first.text, first, parent, depth)
    }

    /// A value that begins in this line, of a key or item that begins in the column `indent`.
    fn value(
        &mut self,
        rest: &'a str,
        line: Line<'a>,
        indent: usize,
        depth: usize,
    ) -> Result<Node, Wrong> {
        let rest = rest.trim_start_matches([' ', '\t']);
        if rest.starts_with(['|', '>']) {
            return text::read(self, rest, line, indent);
        }
        if rest.starts_with(['"', '\'']) {
            let (text, after) = flow::quoted(rest, line)?;
            return ends(after, line).map(|()| Node::Text(text));
        }
        if rest.starts_with(['[', '{']) {
            let (node, after) = flow::collection(rest, line, depth + 1)?;
            return ends(after, line).map(|()| node);
        }
        self.plain(rest, line, indent)
    }

    /// A plain value; what is indented further below belongs to it.
    fn plain(&mut self, rest: &'a str, line: Line<'a>, indent: usize) -> Result<Node, Wrong> {
        check_begin(rest, line)?;
        let (first, mut is_over) = without_comment(rest);
        check_inside(first, line)?;
        let (mut text, mut breaks, mut is_long) = (first.to_owned(), 0, false);
        while let Some(next) = self.lines.get(self.at).copied().filter(|_| !is_over) {
            if next.is_blank() {
                (breaks, self.at) = (breaks + 1, self.at + 1);
                continue;
            }
            if next.indent <= indent || next.is_comment() {
                break;
            }
            if next.is_item() {
                let what = "a list cannot follow a value";
                return Err(next.wrong(what, "leave the line of the key empty after the colon"));
            }
            let (part, has_comment) = without_comment(next.text);
            check_inside(part, next)?;
            match breaks {
                0 => text.push(' '),
                some => text.extend(std::iter::repeat_n('\n', some)),
            }
            text.push_str(part);
            (breaks, is_long, is_over, self.at) = (0, true, has_comment, self.at + 1);
        }
        match is_long {
            true => Ok(Node::Text(text)),
            false => scalar::resolve(&text).map_err(|what| line.wrong(what, QUOTE)),
        }
    }
}

/// The key that a line begins with, and what follows its colon.
fn key(line: Line<'_>) -> Result<Option<(String, &str)>, Wrong> {
    let text = line.text;
    if text.starts_with(['"', '\'']) {
        let (name, after) = flow::quoted(text, line)?;
        let rest = after.trim_start_matches([' ', '\t']).strip_prefix(':');
        return Ok(rest
            .filter(|rest| rest.is_empty() || begins_blank(rest))
            .map(|rest| (name, rest)));
    }
    if text.starts_with(['[', '{', '|', '>']) || line.is_item() {
        return Ok(None);
    }
    let (said, _) = without_comment(text);
    let Some(colon) = colon(said) else { return Ok(None) };
    let name = said[..colon].trim_end_matches([' ', '\t']);
    check_begin(text, line)?;
    match scalar::resolve(name) {
        Ok(Node::Text(name)) => Ok(Some((name, &text[colon + 1..]))),
        _ => {
            let what = format!("the key `{name}` is not a text");
            Err(line.wrong(what, "put the key in quotes"))
        }
    }
}

/// Where the first colon is that a space or the end of the line follows.
pub(super) fn colon(text: &str) -> Option<usize> {
    let ends_key = |at: &usize| {
        let after = &text[at + 1..];
        after.is_empty() || begins_blank(after)
    };
    text.match_indices(':').map(|(at, _)| at).find(ends_key)
}

/// A line's text up to its comment, and whether there is one: a `#` after a space.
pub(super) fn without_comment(text: &str) -> (&str, bool) {
    let mut marks = text.match_indices('#').map(|(at, _)| at);
    match marks.find(|at| text[..*at].ends_with([' ', '\t'])) {
        Some(at) => (text[..at].trim_end_matches([' ', '\t']), true),
        None => (text, false),
    }
}

/// Refuses what a plain value cannot begin with.
pub(super) fn check_begin(text: &str, line: Line<'_>) -> Result<(), Wrong> {
    let mut letters = text.chars();
    let first = letters.next().unwrap_or_default();
    let is_alone = letters.next().is_none_or(|second| matches!(second, ' ' | '\t'));
    if INDICATORS.contains(&first) || matches!(first, '-' | '?' | ':') && is_alone {
        let what = format!("a plain value cannot begin with `{first}`");
        let help = match first {
            '&' | '*' | '!' => {
                "anchors, aliases and tags are not read here; write the value out or quote it"
            }
            _ => QUOTE,
        };
        return Err(line.wrong(what, help));
    }
    Ok(())
}

fn check_inside(text: &str, line: Line<'_>) -> Result<(), Wrong> {
    match colon(text) {
        None => Ok(()),
        Some(_) => {
            let what = "a plain value cannot hold a colon before a space or at its end";
            Err(line.wrong(what, format!("{QUOTE}, or write it as a text after `>-`")))
        }
    }
}

/// Nothing but a comment may follow.
pub(super) fn ends(after: &str, line: Line<'_>) -> Result<(), Wrong> {
    let rest = after.trim_start_matches([' ', '\t']);
    if rest.is_empty() || rest.starts_with('#') && rest.len() < after.len() {
        return Ok(());
    }
    Err(line.wrong("something follows the end of the value", "quote the whole value or none of it"))
}

fn is_nothing(rest: &str) -> bool {
    let rest = rest.trim_start_matches([' ', '\t']);
    rest.is_empty() || rest.starts_with('#')
}

fn too_far(line: Line<'_>) -> Wrong {
    let help = "begin keys and items of one level in the same column";
    line.wrong("this line is indented further than what it belongs to", help)
}
