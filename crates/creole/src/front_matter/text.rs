//! Texts of several lines: `|` keeps the ends of lines, `>` makes one line of those that belong together.

use super::block::ends;
use super::lines::{Line, Reader};
use super::{Node, Wrong};

/// What becomes of the last ends of lines.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// One stays.
    One,
    /// None stays: `-`.
    None,
    /// All stay: `+`.
    All,
}

/// Reads the text whose header is `header`; its lines are indented further than `indent`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    header: &str,
    line: Line<'_>,
    indent: usize,
) -> Result<Node, Wrong> {
    let folds = header.starts_with('>');
    let rest = &header[1..];
    let (last, rest) = match rest.as_bytes().first() {
        Some(b'-') => (Last::None, &rest[1..]),
        Some(b'+') => (Last::All, &rest[1..]),
        _ => (Last::One, rest),
    };
    if rest.starts_with(|letter: char| letter.is_ascii_digit()) {
        let help =
            "leave the number out and begin the text with a line that is not indented further";
        return Err(line.wrong("a number after `|` or `>` is not read here", help));
    }
    ends(rest, line)?;
    let mut text = Text { folds, ..Text::default() };
    let (mut width, mut widest_blank) = (None, 0);
    while let Some(next) = reader.lines.get(reader.at).copied() {
        match width {
            None if next.is_blank() => {
                widest_blank = widest_blank.max(next.raw.len());
                text.blanks += 1;
            }
            None if next.indent <= indent => break,
            None if widest_blank > next.indent => {
                let what = "an empty line above has more spaces than this first line of the text";
                return Err(next.wrong(what, "take the spaces of the empty line out"));
            }
            None => {
                width = Some(next.indent);
                text.push(&next.raw[next.indent..]);
            }
            Some(width) if next.is_blank() && next.raw.len() <= width => text.blanks += 1,
            Some(width) if !next.is_blank() && next.indent < width => break,
            Some(width) => text.push(&next.raw[width..]),
        }
        reader.at += 1;
    }
    Ok(Node::Text(text.end(last)))
}

/// A text as it grows.
#[derive(Default)]
struct Text {
    folds: bool,
    said: String,
    /// Whether there is a line already, and whether the last one was indented further.
    has_line: bool,
    was_indented: bool,
    /// Empty lines since then.
    blanks: usize,
}

impl Text {
    fn push(&mut self, line: &str) {
        // A line that is indented further than the text keeps the ends of lines around it.
        let is_indented = line.starts_with([' ', '\t']);
        if self.has_line {
            if !self.folds || self.was_indented || is_indented {
                self.said.push('\n');
            } else if self.blanks == 0 {
                self.said.push(' ');
            }
        }
        self.said.extend(std::iter::repeat_n('\n', self.blanks));
        self.said.push_str(line);
        (self.has_line, self.was_indented, self.blanks) = (true, is_indented, 0);
    }

    fn end(mut self, last: Last) -> String {
        if self.has_line && last != Last::None {
            self.said.push('\n');
        }
        if last == Last::All {
            self.said.extend(std::iter::repeat_n('\n', self.blanks));
        }
        self.said
    }
}
