//! The lines of a front matter, between its two `---`.

use super::{LONGEST, Wrong};

/// One line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    /// Its number in the file, from one.
    pub(super) number: usize,
    /// How many spaces it begins with.
    pub(super) indent: usize,
    /// The whole line.
    pub(super) raw: &'a str,
    /// The line without the space around it.
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    fn of(number: usize, raw: &'a str) -> Result<Self, Wrong> {
        let indent = raw.len() - raw.trim_start_matches(' ').len();
        if raw[indent..].starts_with('\t') {
            let what = "this line is indented by a tab";
            return Err(Wrong::new(number, what, "indent by spaces"));
        }
        if let Some(odd) = raw.chars().find(|letter| is_odd(*letter)) {
            let what = format!("the character U+{:04X} cannot stand here", u32::from(odd));
            let help = "take it out, or write it as an escape inside of double quotes";
            return Err(Wrong::new(number, what, help));
        }
        Ok(Self { number, indent, raw, text: raw.trim_matches([' ', '\t']) })
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn is_comment(&self) -> bool {
        self.text.starts_with('#')
    }

    /// Whether it is an item of a list.
    pub(super) fn is_item(&self) -> bool {
        self.text.strip_prefix('-').is_some_and(|rest| rest.is_empty() || begins_blank(rest))
    }

    pub(super) fn wrong(&self, what: impl Into<String>, help: impl Into<String>) -> Wrong {
        Wrong::new(self.number, what, help)
    }
}

/// Whether a text begins with a space or a tab.
pub(super) fn begins_blank(text: &str) -> bool {
    text.starts_with([' ', '\t'])
}

/// What YAML does not allow, and what readers disagree on: tabs between words, and other ends of lines.
fn is_odd(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

/// Reads line by line.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) lines: Vec<Line<'a>>,
    /// The next line.
    pub(super) at: usize,
}

impl<'a> Reader<'a> {
    /// The lines of the front matter that a text begins with.
    pub(super) fn of(text: &'a str) -> Result<Self, Wrong> {
        let mut all = text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        if all.next() != Some("---") {
            let help =
                "the first line is `---`, then come `name:` and `description:`, then `---` again";
            return Err(Wrong::new(1, "the file does not begin with front matter", help));
        }
        let (mut lines, mut length) = (Vec::new(), 0);
        for (position, raw) in all.enumerate() {
            if raw.trim_end_matches([' ', '\t']) == "---" {
                return Ok(Self { lines, at: 0 });
            }
            length += raw.len() + 1;
            if length > LONGEST {
                break;
            }
            lines.push(Line::of(position + 2, raw)?);
        }
        let what = match length > LONGEST {
            true => format!("the front matter is longer than {LONGEST} bytes"),
            false => "the front matter does not end".to_owned(),
        };
        Err(Wrong::new(1, what, "end it by a line `---` before the text"))
    }

    /// The next line that says something.
    pub(super) fn peek(&mut self) -> Option<Line<'a>> {
        while let Some(line) = self.lines.get(self.at) {
            if !line.is_blank() && !line.is_comment() {
                return Some(*line);
            }
            self.at += 1;
        }
        None
    }
}
