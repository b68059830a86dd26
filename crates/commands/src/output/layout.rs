//! The layout of output: wrapped and coloured at a terminal, plain in a pipe.

use std::io::IsTerminal;
use std::{env, io};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width of a terminal that does not report one.
const DEFAULT_WIDTH: usize = 80;

/// The rows of a terminal that does not report them.
const DEFAULT_ROWS: usize = 24;

/// The minimum width for text beside its label. With less, it is placed below the label.
const MIN_TEXT_WIDTH: usize = 24;

/// The indent of text below its label.
const BELOW_INDENT: usize = 6;

/// The properties of an output stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The columns of the terminal. `None` if it is not a terminal, and nothing is wrapped.
    width: Option<usize>,
    has_colours: bool,
}

impl Layout {
    /// Without wrapping and colours.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { width: None, has_colours: false };

    /// A terminal of this width, without colours.
    #[cfg(test)]
    pub(crate) fn of_width(width: usize) -> Self {
        Self { width: Some(width), has_colours: false }
    }

    /// The rows of the terminal of stdout.
    pub(crate) fn rows_of_stdout() -> usize {
        io::stdout().rows().filter(|rows| *rows > 0).unwrap_or(DEFAULT_ROWS)
    }

    /// The layout of stdout.
    pub(crate) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// The layout of stderr.
    pub(crate) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &(impl IsTerminal + Terminal)) -> Self {
        if !stream.is_terminal() {
            return Self { width: None, has_colours: false };
        }
        let wants_none = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let width = stream.columns().filter(|width| *width > 0).unwrap_or(DEFAULT_WIDTH);
        Self { width: Some(width), has_colours: !wants_none && has_ansi() }
    }

    /// The columns of the terminal, if it is one.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    /// Whether text may have colours.
    pub(crate) fn has_colours(self) -> bool {
        self.has_colours
    }

    /// The name of a list or a part of a report.
    pub(crate) fn heading(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// The name or URI of an item.
    pub(crate) fn name(self, text: &str) -> String {
        self.paint("36", text)
    }

    /// Less important text.
    pub(crate) fn faint(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Text about a success or an addition.
    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// Text about an error or a removal.
    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self.has_colours && !text.is_empty() {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    /// A label and a text beside it, with a hanging indent. `before` is everything before the text, with its spaces.
    /// The two functions colour the parts.
    pub(crate) fn entry(
        self,
        before: &str,
        label: impl Fn(&str) -> String,
        text: &str,
        style: impl Fn(&str) -> String,
    ) -> String {
        let styled = |text: &str| match text.is_empty() {
            true => String::new(),
            false => style(text),
        };
        let beside = |text: &str| match text.is_empty() {
            true => label(before.trim_end()),
            false => format!("{}{}", label(before), styled(text)),
        };
        let Some(width) = self.width else { return beside(text) };
        let indent = before.width();
        if indent + text.width() < width {
            return beside(text);
        }
        let (mut shown, indent) = match width.checked_sub(indent + 1) {
            Some(available) if available >= MIN_TEXT_WIDTH => (label(before), indent),
            _ => (
                format!("{}\n{}", label(before.trim_end()), " ".repeat(BELOW_INDENT)),
                BELOW_INDENT,
            ),
        };
        let available = width.saturating_sub(indent + 1).max(MIN_TEXT_WIDTH);
        let lines: Vec<String> = wrapped(text, available).iter().map(|line| styled(line)).collect();
        shown.push_str(&lines.join(&format!("\n{}", " ".repeat(indent))));
        shown
    }
}

/// The text in lines of at most this width, wrapped between words if possible.
fn wrapped(text: &str, available: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.width() + 1 + word.width() > available {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        for character in word.chars() {
            if !line.is_empty() && line.width() + character.width().unwrap_or(0) > available {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
    }
    lines.push(line);
    lines
}

/// The beginning of a text, at most this many columns wide.
pub(crate) fn truncated(text: &str, columns: usize) -> &str {
    let mut taken = 0;
    for (index, character) in text.char_indices() {
        taken += character.width().unwrap_or(0);
        if taken > columns {
            return &text[..index];
        }
    }
    text
}

/// A text padded with spaces to this many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(text.width())))
}

/// Whether the terminal supports colours and erasing a line.
pub(crate) fn has_ansi() -> bool {
    env::var_os("TERM").map_or(cfg!(windows), |kind| kind != "dumb" && !kind.is_empty())
}

/// A stream that knows the size of its terminal.
trait Terminal {
    fn columns(&self) -> Option<usize>;

    fn rows(&self) -> Option<usize>;
}

#[cfg(unix)]
impl<T: std::os::fd::AsFd> Terminal for T {
    fn columns(&self) -> Option<usize> {
        rustix::termios::tcgetwinsize(self).ok().map(|size| usize::from(size.ws_col))
    }

    fn rows(&self) -> Option<usize> {
        rustix::termios::tcgetwinsize(self).ok().map(|size| usize::from(size.ws_row))
    }
}

#[cfg(not(unix))]
impl<T> Terminal for T {
    fn columns(&self) -> Option<usize> {
        env::var("COLUMNS").ok()?.parse().ok()
    }

    fn rows(&self) -> Option<usize> {
        env::var("LINES").ok()?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn text_is_wrapped_beside_its_label() {
        let narrow = Layout { width: Some(40), has_colours: false };
        let shown = narrow.entry(
            "  add  ",
            plain,
            "Adds two numbers and says what they are together",
            plain,
        );
        assert_eq!(shown, "  add  Adds two numbers and says what\n       they are together");
        assert_eq!(narrow.entry("  add  ", plain, "Adds", plain), "  add  Adds");
        assert_eq!(narrow.entry("  add  ", plain, "", plain), "  add");
        assert_eq!(
            Layout::PLAIN.entry("a ", plain, &"b ".repeat(100), plain),
            format!("a {}", "b ".repeat(100))
        );
    }

    #[test]
    fn text_without_space_is_printed_below_its_label() {
        let narrow = Layout { width: Some(40), has_colours: false };
        let label = format!("  {}  ", "x".repeat(30));
        let shown = narrow.entry(&label, plain, "one two three four five six seven eight", plain);
        assert_eq!(
            shown,
            format!("{}\n      one two three four five six seven\n      eight", label.trim_end())
        );
    }

    #[test]
    fn wide_characters_and_long_words_are_counted_in_columns() {
        assert_eq!(wrapped("日本語 日本語", 8), ["日本語", "日本語"]);
        assert_eq!(wrapped(&"x".repeat(25), 10), ["xxxxxxxxxx", "xxxxxxxxxx", "xxxxx"]);
        assert_eq!(truncated("日本語", 5), "日本");
        assert_eq!(padded("日", 4), "日  ");
    }

    #[test]
    fn colours_are_around_text_and_never_around_nothing() {
        let coloured = Layout { width: Some(40), has_colours: true };
        assert_eq!(coloured.bad("x"), "\x1b[31mx\x1b[0m");
        assert_eq!(coloured.bad(""), "");
        assert_eq!(Layout::PLAIN.bad("x"), "x");
    }
}
