//! Errors in a configuration, formatted like those of a compiler.

use std::fmt;
use std::ops::Range;

/// The maximum number of characters that are shown of a line.
const MAX_SHOWN_CHARS: usize = 100;
/// The number of characters that are shown before the error when a line is too long.
const LEAD_CHARS: usize = 30;

/// An error in a configuration, with a suggestion.
///
/// Its text is shown to the user:
///
/// ```text
/// error: unknown key `pakcs`
///  --> creole.toml:4:1
///   |
/// 4 | pakcs = ["echo"]
///   | ^^^^^
///   = help: did you mean `packs`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The name of the file or preset.
    pub file: Option<String>,
    /// The location in the file.
    pub location: Option<Location>,
    /// The error message.
    pub message: String,
    /// The suggestion.
    pub help: Option<String>,
}

/// A location in a file. Lines and columns count from one. Columns count characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The line.
    pub line: usize,
    /// The column of the first character.
    pub column: usize,
    /// How many characters it spans, at most to the end of the line.
    pub length: usize,
    /// The whole line.
    pub snippet: String,
}

/// An error whose file is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfigProblem {
    span: Option<Range<usize>>,
    /// The part of the span that the error is about, if the span contains it.
    part: Option<String>,
    message: String,
    help: Option<String>,
    /// Whether the value there may be a secret.
    is_hidden: bool,
}

impl ConfigProblem {
    /// A problem without a location.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { span: None, part: None, message: message.into(), help: None, is_hidden: false }
    }

    /// Sets the location.
    pub(crate) fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }

    /// Sets the location if there is none yet.
    pub(crate) fn or_at(mut self, span: Range<usize>) -> Self {
        self.span.get_or_insert(span);
        self
    }

    /// Narrows the location to this text.
    pub(crate) fn about_part(mut self, part: &str) -> Self {
        self.part = Some(part.to_owned());
        self
    }

    /// Adds a suggestion.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Hides the value at the location, because it may be a secret.
    pub(crate) fn hide_value(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    /// The error in the file of this name and text.
    pub(crate) fn into_error(self, file: &str, text: &str) -> ConfigError {
        let location = self.span.map(|span| match self.is_hidden {
            true => Location::from_span(span.clone(), &masked(span, text)),
            false => Location::from_span(narrowed_span(span, self.part.as_deref(), text), text),
        });
        ConfigError {
            file: Some(file.to_owned()),
            location,
            message: self.message,
            help: self.help,
        }
    }
}

fn narrowed_span(span: Range<usize>, part: Option<&str>, text: &str) -> Range<usize> {
    let found = || {
        let start = span.start + text.get(span.clone())?.find(part?)?;
        Some(start..start + part?.len())
    };
    found().unwrap_or_else(|| span.clone())
}

/// The text with asterisks in place of the span.
fn masked(span: Range<usize>, text: &str) -> String {
    let (start, end) = (text.floor_char_boundary(span.start), text.floor_char_boundary(span.end));
    let secret = end.saturating_sub(start);
    format!("{}{}{}", &text[..start], "*".repeat(secret), &text[start + secret..])
}

/// Keys whose values are secrets, unless they name a variable.
const SECRET_KEYS: [&str; 6] =
    ["bearer", "password", "value", "client_secret", "Authorization", "Cookie"];

/// A line with asterisks in place of secrets. An error may be next to a secret, and errors end up in logs.
fn mask_secrets(line: &str) -> String {
    let mut shown = line.to_owned();
    for key in SECRET_KEYS {
        let mut from = 0;
        while let Some(found) = shown[from..].find(key) {
            let (start, end) = (from + found, from + found + key.len());
            from = end;
            let is_whole = !shown[..start]
                .ends_with(|character: char| character.is_alphanumeric() || character == '_');
            if let Some(secret) = value_span(&shown, end).filter(|_| is_whole) {
                let stars = "*".repeat(shown[secret.clone()].chars().count());
                shown.replace_range(secret, &stars);
            }
        }
    }
    shown
}

/// The range of a key's value without its quotes. `None` if it is a variable.
fn value_span(line: &str, end: usize) -> Option<Range<usize>> {
    let rest = line[end..].trim_start_matches(['"', '\'']).trim_start();
    let text = rest.strip_prefix('=')?.trim_start();
    let quote = text.chars().next().filter(|character| matches!(character, '"' | '\''))?;
    let inner = &text[1..];
    let start = line.len() - inner.len();
    let length = inner.find(quote).unwrap_or(inner.len());
    (!inner.starts_with("${")).then_some(start..start + length)
}

impl Location {
    fn from_span(span: Range<usize>, text: &str) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let snippet = text[line_start..line_end].trim_end_matches('\r');
        Self {
            line: text[..line_start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            length: text[start..end.min(line_end)].trim_end().chars().count().max(1),
            snippet: mask_secrets(snippet),
        }
    }
}

impl ConfigError {
    /// The error for a JSON file, the format of clients' configurations.
    pub(crate) fn json_file(file: &str) -> Self {
        let help = format!("`creole import {file}` converts it to a configuration");
        Self::without_location(format!("`{file}` is JSON, but a configuration is TOML"), Some(help))
    }

    /// An error without a location.
    pub(crate) fn without_location(message: impl Into<String>, help: Option<String>) -> Self {
        Self { file: None, location: None, message: message.into(), help }
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "error: {}", escape_control(&self.message))?;
        let mut gutter = 1;
        if let Some(file) = &self.file {
            gutter = self.location.as_ref().map_or(1, |location| location.line.to_string().len());
            write!(formatter, "\n{:gutter$}--> {}", "", escape_control(file))?;
        }
        if let Some(location) = &self.location {
            let (text, offset, length) = location.visible_part();
            write!(formatter, ":{}:{}", location.line, location.column)?;
            write!(formatter, "\n{:gutter$} |", "")?;
            write!(formatter, "\n{} | {text}", location.line)?;
            write!(formatter, "\n{:gutter$} | {:offset$}{:^<length$}", "", "", "")?;
        }
        match &self.help {
            Some(help) => write!(formatter, "\n{:gutter$} = help: {}", "", escape_control(help)),
            None => Ok(()),
        }
    }
}

impl Location {
    /// The visible part of the line, with the start and the number of the marks.
    fn visible_part(&self) -> (String, usize, usize) {
        let line: Vec<char> = self.snippet.chars().collect();
        let fault = (self.column - 1).min(line.len());
        let first = if line.len() > MAX_SHOWN_CHARS { fault.saturating_sub(LEAD_CHARS) } else { 0 };
        let last = line.len().min(first + MAX_SHOWN_CHARS);
        let mut text = String::from(if first > 0 { "…" } else { "" });
        let mut offset = text.chars().count();
        let mut length = 0;
        for (position, character) in line[first..last].iter().enumerate() {
            let width = push_escaped(*character, &mut text);
            let position = first + position;
            if position < fault {
                offset += width;
            } else if position < fault + self.length {
                length += width;
            }
        }
        if last < line.len() {
            text.push('…');
        }
        (text.trim_end().to_owned(), offset, length.max(1))
    }
}

/// Appends one character so that it cannot control the terminal. Returns the number of characters written.
fn push_escaped(character: char, text: &mut String) -> usize {
    match character {
        '\t' => {
            text.push_str("    ");
            4
        }
        character => {
            text.push(if character.is_control() { '\u{fffd}' } else { character });
            1
        }
    }
}

/// A text with escaped control characters.
fn escape_control(text: &str) -> String {
    let escape = |character: char| -> String {
        if character.is_control() { character.escape_default().collect() } else { character.into() }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, fault: &str) -> String {
        let start = text.find(fault).unwrap();
        let problem = ConfigProblem::new("wrong").at(start..start + fault.len()).help("better");
        problem.into_error("a.toml", text).to_string()
    }

    #[test]
    fn the_error_is_underlined_and_the_gutter_is_as_wide_as_the_line_number() {
        let expected =
            "error: wrong\n  --> a.toml:10:5\n   |\n10 | a = 7\n   |     ^\n   = help: better";
        assert_eq!(shown("\n\n\n\n\n\n\n\n\na = 7\r\nb = 8\n", "7"), expected);
    }

    #[test]
    fn columns_count_characters_and_a_tab_is_shown_as_four_spaces() {
        let expected = "error: wrong\n --> a.toml:1:7\n  |\n1 |     é = \"x\"\n  |          ^\n  = help: better";
        assert_eq!(shown("\té = \"x\"", "x"), expected);
    }

    #[test]
    fn a_long_line_is_shortened_on_both_sides_of_the_error() {
        let text = format!("{} = {}", "a".repeat(300), "b".repeat(300));
        let rendered = shown(&text, "=");
        assert!(rendered.contains(":1:302\n"), "{rendered}");
        let lines: Vec<&str> = rendered.lines().collect();
        assert!(lines[3].starts_with("1 | …aaa") && lines[3].ends_with("bbb…"), "{rendered}");
        let mark = lines[4].chars().position(|character| character == '^').unwrap();
        assert_eq!(lines[3].chars().nth(mark), Some('='));
    }

    #[test]
    fn a_span_over_several_lines_is_underlined_to_the_end_of_the_first() {
        assert!(shown("a = [\n1,\n]", "[\n1,\n]").contains("1 | a = [\n  |     ^\n  = help"));
    }

    #[test]
    fn a_secret_beside_the_error_is_not_shown() {
        let rows = [
            (r#"auth = { bearer = "hunter2", x = 1 }"#, r#"auth = { bearer = "*******", x = 1 }"#),
            ("key = { value='äö', password = \"b\" }", "key = { value='**', password = \"*\" }"),
            ("\"Authorization\" = \"Bearer x\"", "\"Authorization\" = \"********\""),
            ("bearer = \"${TOKEN}\"", "bearer = \"${TOKEN}\""),
            ("bearer_file = \"a\", my_value = \"b\"", "bearer_file = \"a\", my_value = \"b\""),
            ("password = \"unclosed", "password = \"********"),
            ("value = 5 # bearer", "value = 5 # bearer"),
        ];
        for (text, shown) in rows {
            assert_eq!(mask_secrets(text), shown);
        }
        assert!(!shown("token = { valeu = 1, value = \"hunter2\" }", "valeu").contains("hunter2"));
    }

    #[test]
    fn a_position_at_the_end_has_one_mark() {
        let error = ConfigProblem::new("wrong").at(3..3).into_error("a.toml", "a =");
        assert_eq!(
            error.location.as_ref().map(|location| (location.column, location.length)),
            Some((4, 1))
        );
        assert!(error.to_string().ends_with("1 | a =\n  |    ^"));
    }

    #[test]
    fn nothing_in_a_file_can_steer_the_terminal() {
        let problem = ConfigProblem::new("wrong \u{1b}[31m").at(0..2).help("\u{9b}1m");
        let rendered = problem.into_error("a\nb", "\u{1b}[2J = 1").to_string();
        assert!(
            rendered.chars().all(|character| character == '\n' || !character.is_control()),
            "{rendered}"
        );
        assert_eq!(rendered.lines().count(), 6);
    }
}
