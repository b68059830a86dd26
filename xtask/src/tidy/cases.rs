//! Checks `docs/cases.md`: every case of the bridge is listed once, and the tests that it names exist.

use super::Findings;
use crate::repository::File;

/// The document.
const PATH: &str = "docs/cases.md";

/// The prefixes of file names in it.
const BEGINNINGS: [&str; 3] = ["acceptance/tests/", "acceptance/transcripts/", "crates/"];

/// The number of cases of the bridge, which are numbered from one.
const CASES: usize = 114;

/// Checks every row of the document.
pub(super) fn check(files: &[File], findings: &mut Findings) {
    let Some(document) = files.iter().find(|file| file.path == PATH) else {
        return findings.add(
            PATH,
            1,
            "the document is missing",
            "write the table of cases and tests",
        );
    };
    let mut expected = 1;
    for (index, line) in document.text.lines().enumerate() {
        let Some((case, shown)) = row(line) else { continue };
        if let Ok(number) = case.parse::<usize>() {
            if number != expected {
                let problem = format!("case {number} is in place of case {expected}");
                findings.add(PATH, index + 1, &problem, "list each case once, in order");
            }
            expected = number + 1;
        }
        for test in shown.split('`').skip(1).step_by(2).filter(|test| !exists(test, files)) {
            let problem = format!("the test `{test}` does not exist");
            findings.add(PATH, index + 1, &problem, "name an existing test, or write `missing`");
        }
        if !shown.contains('`') && !shown.contains("missing") {
            findings.add(
                PATH,
                index + 1,
                "this case has no test",
                "name a test, or write `missing`",
            );
        }
    }
    if expected != CASES + 1 {
        let problem = format!("the last case is {}", expected - 1);
        findings.add(PATH, 1, &problem, &format!("list all {CASES} cases"));
    }
}

/// The case of a row, and its tests.
fn row(line: &str) -> Option<(&str, &str)> {
    let cells: Vec<_> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
    let [case, _, shown, ..] = cells[..] else { return None };
    let number = case.trim_start_matches(|character: char| character.is_ascii_uppercase());
    let is_case = !number.is_empty() && number.chars().all(|character| character.is_ascii_digit());
    is_case.then_some((case, shown))
}

/// Whether there is such a transcript, or such a function in such a file.
fn exists(test: &str, files: &[File]) -> bool {
    let (path, function) = test.split_once("::").unwrap_or((test, ""));
    let is_match =
        |file: &&File| BEGINNINGS.iter().any(|begin| file.path == format!("{begin}{path}"));
    let Some(file) = files.iter().find(is_match) else { return false };
    function.is_empty() || file.text.contains(&format!("fn {function}("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_names_its_case_and_its_tests() {
        assert_eq!(row("| 7 | what | `a.rs::b` |"), Some(("7", "`a.rs::b`")));
        assert_eq!(row("| C07 | what | missing |"), Some(("C07", "missing")));
        assert_eq!(row("| UA1 | what | missing |"), Some(("UA1", "missing")));
        for other in ["| Case | What | Shown |", "|---|---|---|", "text"] {
            assert_eq!(row(other), None);
        }
    }
}
