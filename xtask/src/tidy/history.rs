//! Checks commit titles: `part: imperative`, at most 72 characters.

use std::process::Command;

use super::Findings;
use crate::say;

/// The last commit that is not checked.
const BASE: &str = "f4dc7d67b3d52f77e057d3bac8749239ccdff7b6";

/// The length that `git log --oneline` and code hosts show without truncation.
const MAX_TITLE_CHARS: usize = 72;

pub(super) fn check(findings: &mut Findings) {
    let range = format!("{BASE}..HEAD");
    let log = Command::new("git").args(["log", "--no-merges", "--format=%h %s", &range]).output();
    match log {
        Ok(output) if output.status.success() => {
            check_titles(&String::from_utf8_lossy(&output.stdout), findings);
        }
        // A source archive has no history, and a shallow clone only a part of it.
        _ => say("commit titles are not checked: the git history is incomplete"),
    }
}

/// Checks lines of a commit's abbreviated hash and its title.
fn check_titles(log: &str, findings: &mut Findings) {
    for (hash, title) in log.lines().filter_map(|line| line.split_once(' ')) {
        let length = title.chars().count();
        if length > MAX_TITLE_CHARS {
            let problem = format!("the title has {length} characters");
            findings.add(hash, 1, &problem, "use at most 72, and write the reasons in the body");
        }
        if !has_part(title) {
            let problem = format!("the title `{title}` names no part");
            findings.add(hash, 1, &problem, "write `part: imperative`");
        }
    }
}

/// Whether a title begins with the part that changes, in lower case, and a colon.
fn has_part(title: &str) -> bool {
    let Some((part, rest)) = title.split_once(": ") else { return false };
    let is_part =
        |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || ", -_./".contains(char);
    !part.is_empty() && part.chars().all(is_part) && !rest.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(log: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check_titles(log, &mut findings);
        findings.0
    }

    #[test]
    fn a_title_names_its_part_and_is_short() {
        assert!(findings("abc1234 gateway: retry a lost session once\n").is_empty());
        assert!(findings("abc1234 creole, gateway: remove dead paths\n").is_empty());
        assert!(findings("abc1234 Functions lie elsewhere\n")[0].contains("names no part"));
        let long = format!("abc1234 docs: {}\n", "x".repeat(67));
        assert!(findings(&long)[0].contains("73 characters"));
    }
}
