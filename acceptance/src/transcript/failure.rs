//! The report of a failed transcript: the line, two blocks to compare, and the exchange so far.

use std::fmt;
use std::path::PathBuf;

/// A transcript that failed.
#[derive(Debug)]
pub struct Failure(pub(super) Box<FailureReport>);

#[derive(Debug)]
pub(super) struct FailureReport {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) what: String,
    pub(super) expected: String,
    pub(super) got: String,
    pub(super) conversation: ConversationLog,
    pub(super) notes: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.0;
        writeln!(f, "{}:{}: {}", report.file.display(), report.line, report.what)?;
        block(f, "expected", &report.expected)?;
        block(f, "got", &report.got)?;
        block(f, "conversation", &report.conversation.lines.join("\n"))?;
        if report.notes.trim().is_empty() {
            return Ok(());
        }
        block(f, "the stage says", report.notes.trim_end())
    }
}

impl std::error::Error for Failure {}

fn block(f: &mut fmt::Formatter<'_>, title: &str, text: &str) -> fmt::Result {
    writeln!(f, "  {title}:")?;
    text.lines().try_for_each(|line| writeln!(f, "      {line}"))
}

/// All messages so far, one per line, long lines shortened.
#[derive(Clone, Debug, Default)]
pub(super) struct ConversationLog {
    lines: Vec<String>,
}

impl ConversationLog {
    pub(super) fn add(&mut self, mark: &str, text: &str) {
        self.lines.push(format!("{mark} {}", shortened(text.trim_end_matches('\n'))));
    }
}

fn shortened(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(LONGEST) else {
        return text.to_owned();
    };
    format!("{} … ({} bytes)", &text[..end], text.len())
}

const LONGEST: usize = 2000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_the_location_both_sides_and_the_session() {
        let mut log = ConversationLog::default();
        log.add(">", "{\"id\":1}\n");
        log.add("<", "{\"id\":2}");
        let failure = Failure(Box::new(FailureReport {
            file: PathBuf::from("t.txt"),
            line: 6,
            what: "not the expected message (at id)".to_owned(),
            expected: "{\"id\":1}".to_owned(),
            got: "{\"id\":2}".to_owned(),
            conversation: log,
            notes: "stderr of the server\n".to_owned(),
        }));
        let report = "t.txt:6: not the expected message (at id)\n  expected:\n      {\"id\":1}\n  \
                      got:\n      {\"id\":2}\n  conversation:\n      > {\"id\":1}\n      < \
                      {\"id\":2}\n  the stage says:\n      stderr of the server\n";
        assert_eq!(failure.to_string(), report);
    }

    #[test]
    fn a_megabyte_is_not_printed() {
        let mut log = ConversationLog::default();
        log.add(">", &"é".repeat(1_048_576));
        assert!(log.lines[0].len() < 5000);
        assert!(log.lines[0].ends_with("… (2097152 bytes)"));
    }
}
