//! Checks forbidden words in all files, and the required parts of transcripts and of the repository's root.

use super::{Findings, is_own};
use crate::repository::File;

/// Words of the development environment: local paths, hosts that a build must not need, and notes about the work.
const BANNED: &[&str] = &[
    "/work/",
    "shared/",
    "registry.npmjs",
    "index.crates",
    "files.pythonhosted",
    "subagent",
    "sub-agent",
    "as an AI",
    "(lead)",
];

/// Files in which such a word is intended.
const MEANT: &[(&str, &str)] = &[(".ci/run", "shared/")];

/// Files that every source distribution contains.
const REQUIRED: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "docs/dependencies.md"];

pub(super) fn check(files: &[File], findings: &mut Findings) {
    for path in REQUIRED {
        if !files.iter().any(|file| file.path == path) {
            findings.add(path, 1, "the file is missing", "add it");
        }
    }
    for file in files {
        if file.path.starts_with("acceptance/transcripts/") && file.path.ends_with(".txt") {
            check_transcript(file, findings);
        }
        if !is_own(file) {
            check_words(file, findings);
        }
    }
}

fn check_words(file: &File, findings: &mut Findings) {
    for (index, line) in file.text.lines().enumerate() {
        for word in BANNED.iter().filter(|word| line.contains(**word)) {
            if !MEANT.contains(&(&file.path, word)) {
                findings.add(
                    &file.path,
                    index + 1,
                    &format!("`{word}`"),
                    "remove it: it belongs to the development environment",
                );
            }
        }
    }
}

/// A transcript begins with prose and names its clause.
fn check_transcript(file: &File, findings: &mut Findings) {
    let opening = file.text.lines().next().unwrap_or_default();
    let is_header = ["Spec: ", "Server: ", "Skip ", "Meta ", "Real time: "]
        .iter()
        .any(|text| opening.starts_with(text));
    if opening.trim().is_empty() || is_header {
        findings.add(
            &file.path,
            1,
            "no prose",
            "begin with a sentence about what the transcript shows",
        );
    }
    let mut head = file.text.lines().take_while(|line| !line.starts_with(['>', '<']));
    if !head.any(|line| line.strip_prefix("Spec: ").is_some_and(|clause| !clause.trim().is_empty()))
    {
        findings.add(&file.path, 1, "no `Spec:` line", "name the document and the clause");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(&[File { path: path.into(), text: text.into() }], &mut findings);
        findings.0.retain(|finding| finding.starts_with(path));
        findings.0
    }

    #[test]
    fn a_transcript_has_prose_and_a_clause() {
        let path = "acceptance/transcripts/a.txt";
        assert!(findings(path, "It pings: always.\nSpec: seed 002, ping\n\n> {}\n").is_empty());
        assert!(findings(path, "Spec: seed 002, ping\n\n> {}\n")[0].contains("no prose"));
        assert!(findings(path, "It pings.\n\n> {}\n< Spec: no\n")[0].contains("no `Spec:` line"));
    }

    #[test]
    fn a_word_of_the_workplace_is_reported_unless_it_is_allowed() {
        assert_eq!(
            findings("a.md", "see\n../shared/spec\n"),
            ["a.md:2: `shared/`; remove it: it belongs to the development environment"]
        );
        assert!(findings(".ci/run", "../shared/spec\n").is_empty());
    }
}
