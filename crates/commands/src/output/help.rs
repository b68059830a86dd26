//! Wraps help text at the width of the terminal, with a hanging indent at the description.

use unicode_width::UnicodeWidthChar;

/// The minimum width for descriptions. With less, further lines are indented slightly below the first one.
const MIN_TEXT_WIDTH: usize = 24;

/// The indent of further lines if there is no room beside the label.
const BELOW_INDENT: usize = 6;

/// Wraps the text at this width. It may contain colours. Command lines are not wrapped, so that they can be copied.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    text.split_inclusive('\n').map(|line| wrapped_line(line, width)).collect()
}

fn wrapped_line(line: &str, width: usize) -> String {
    let plain = without_colours(line);
    let is_command = plain.trim_start().starts_with("creole ") && !plain.trim().contains("  ");
    if columns(plain.trim_end()) <= width || is_command {
        return line.to_owned();
    }
    let column = match hanging_indent(&plain) {
        (_, Some(text)) if text + MIN_TEXT_WIDTH <= width => text,
        (start, Some(_)) => start + BELOW_INDENT,
        (start, None) => start,
    };
    let (mut shown, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        let seen = without_colours(word);
        if used + columns(seen.trim_end()) > width && used > column {
            shown.truncate(shown.trim_end_matches(' ').len());
            shown.push('\n');
            shown.push_str(&" ".repeat(column));
            used = column;
        }
        shown.push_str(word);
        used += columns(seen.trim_end_matches('\n'));
    }
    shown
}

/// The indent of a line, and the column of the description beside its label, if there is one.
fn hanging_indent(plain: &str) -> (usize, Option<usize>) {
    let label = plain.trim_start_matches(' ');
    let start = plain.len() - label.len();
    let text = label.find("  ").map(|gap| {
        let after = label[gap..].trim_start_matches(' ');
        columns(&plain[..plain.len() - after.len()])
    });
    (start, text)
}

/// The text without colours.
fn without_colours(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        shown.push_str(before);
        rest = after.find('m').map_or("", |end| &after[end + 1..]);
    }
    shown.push_str(rest);
    shown
}

fn columns(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continuation_lines_are_indented_to_the_description() {
        let help =
            "Calls a tool\n  -a, --arg  \x1b[1mAn\x1b[0m argument that has a long description\n";
        let expected = "Calls a tool\n  -a, --arg  \x1b[1mAn\x1b[0m argument that has a\n             long description\n";
        assert_eq!(wrapped(help, 38), expected);
        assert_eq!(wrapped(help, 80), help);
    }

    #[test]
    fn paragraphs_are_broken_between_words_and_commands_are_not() {
        assert_eq!(wrapped("one two three\n", 8), "one two\nthree\n");
        assert_eq!(wrapped("    one two three\n", 12), "    one two\n    three\n");
        let command = "  creole call add -- npx -y server\n";
        assert_eq!(wrapped(command, 20), command);
    }

    #[test]
    fn without_space_beside_the_label_lines_begin_after_it() {
        let help = "  --a-long-option  it does something\n";
        assert_eq!(wrapped(help, 28), "  --a-long-option  it does\n        something\n");
    }
}
