//! The text of a front matter, between its two `---`.

use crate::item::front_matter::{FrontMatterError, MAX_BYTES};

/// The text of a front matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrontMatterSource<'a> {
    /// The lines between the two lines `---`.
    pub(crate) text: &'a str,
    /// The number of these lines.
    pub(crate) lines: usize,
}

impl<'a> FrontMatterSource<'a> {
    /// The front matter at the start of a file.
    pub(crate) fn extract(file: &'a str) -> Result<Self, FrontMatterError> {
        let mut all = file.split_inclusive('\n');
        let first = all.next().unwrap_or_default();
        if without_end(first) != "---" {
            let help = "begin the file with `---`, then `name:` and `description:`, then `---`";
            return Err(FrontMatterError::new(
                1,
                "the file does not begin with front matter",
                help,
            ));
        }
        let (start, mut end) = (first.len(), first.len());
        for (lines, line) in all.enumerate() {
            let text = without_end(line);
            if text.trim_end_matches([' ', '\t']) == "---" {
                return Ok(Self { text: &file[start..end], lines });
            }
            end += line.len();
            if end - start > MAX_BYTES {
                let message = format!("the front matter is longer than {MAX_BYTES} bytes");
                return Err(FrontMatterError::new(
                    1,
                    message,
                    "end it with a line `---` before the text",
                ));
            }
            check(lines + 2, text)?;
        }
        let description = "the front matter has no end";
        Err(FrontMatterError::new(1, description, "end it with a line `---` before the text"))
    }
}

fn without_end(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

/// Rejects characters that YAML does not allow, and those on which YAML parsers disagree.
fn check(number: usize, line: &str) -> Result<(), FrontMatterError> {
    if line.trim_start_matches(' ').starts_with('\t') {
        return Err(FrontMatterError::new(
            number,
            "this line is indented by a tab",
            "indent with spaces",
        ));
    }
    if let Some(odd) = line.chars().find(|character| is_ambiguous(*character)) {
        let message = format!("the character U+{:04X} is not allowed here", u32::from(odd));
        let help = "remove it, or write it as an escape in double quotes";
        return Err(FrontMatterError::new(number, message, help));
    }
    if line == "..." || line.starts_with("... ") {
        return Err(FrontMatterError::new(
            number,
            "`...` ends a YAML document",
            "end the front matter with `---`",
        ));
    }
    Ok(())
}

/// Control characters, and line ends other than a newline.
fn is_ambiguous(character: char) -> bool {
    character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}')
}
