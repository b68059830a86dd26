//! Checks the rules of every source file.

use std::collections::HashSet;

use creole_proto::dialect::BUILTIN_NAMES;
use creole_proto::revision::Revision;

use super::{Findings, is_own};
use crate::repository::File;

/// The maximum number of lines of code in a file, and of lines with the tests at its end.
const MOST_CODE: usize = 500;
const MOST_LINES: usize = 700;

/// Files that may be longer, each with its reason.
const LONGER: &[(&str, &str)] = &[];

/// The only file whose code sleeps for tests.
const SLEEPING: &str = "crates/test-wait/src/lib.rs";

/// Product files that may name an era, each with its reason.
const ERA_TABLES: &[(&str, &str)] = &[
    ("crates/proto/src/revision.rs", "the table of rules"),
    ("crates/proto/src/revision/era.rs", "the era as a key"),
];

/// Texts that are forbidden in source files.
const BANNED: &[(&str, &str)] = &[
    ("#[ignore", "make the test pass, or remove it"),
    ("todo!", "implement it, or remove it"),
    ("unimplemented!", "implement it, or remove it"),
    ("dbg!", "remove it"),
    ("TODO", "implement it, or describe it in the issue tracker"),
    ("FIXME", "implement it, or describe it in the issue tracker"),
];

pub(super) fn check(files: &[File], findings: &mut Findings) {
    let test_modules = test_modules(files);
    for file in files {
        let (_, extension) = file.path.rsplit_once('.').unwrap_or_default();
        if matches!(extension, "rs" | "py" | "mjs" | "js" | "ts" | "sh") {
            let source = Source::new(file, &test_modules);
            source.check_length(findings);
            source.check_banned(findings);
            if extension == "rs" {
                source.check_opening(findings);
                source.check_globs(findings);
                source.check_names(findings);
                source.check_sleeps(findings);
                source.check_eras(findings);
            }
        }
    }
}

/// The files of modules that are compiled only for tests.
fn test_modules(files: &[File]) -> HashSet<String> {
    let mut modules = HashSet::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        let own = match name.trim_end_matches(".rs") {
            "lib" | "main" | "mod" => folder.to_owned(),
            stem => format!("{folder}/{stem}"),
        };
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, _) in lines.iter().enumerate().filter(|(_, line)| is_marker(line)) {
            let is_attribute = |line: &&&str| line.starts_with("#[");
            let attributes = lines[index..].iter().take_while(is_attribute).count();
            let declared = lines.get(index + attributes).and_then(|line| line.strip_prefix("mod "));
            if let Some(module) = declared.and_then(|module| module.strip_suffix(';')) {
                modules.extend([format!("{own}/{module}.rs"), format!("{own}/{module}/mod.rs")]);
            }
            for attribute in &lines[index..index + attributes] {
                let path = attribute.strip_prefix("#[path = \"");
                modules
                    .extend(path.map(|path| format!("{folder}/{}", path.trim_end_matches("\"]"))));
            }
        }
    }
    modules
}

/// Whether the next item is compiled only for tests.
fn is_marker(line: &str) -> bool {
    line == "#[cfg(test)]" || line.starts_with("#[cfg(all(test, ")
}

/// Whether a line calls or imports a function `sleep` or `sleep_until`.
fn sleeps(line: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    line.match_indices("sleep").any(|(offset, word)| {
        let (before, after) = (&line[..offset], &line[offset + word.len()..]);
        let after = after.strip_prefix("_until").unwrap_or(after);
        let imported = line.trim_start().starts_with("use ") && !after.starts_with(is_part);
        !before.ends_with(is_part) && (after.starts_with('(') || imported)
    })
}

/// A source file, and where its tests begin.
struct Source<'a> {
    file: &'a File,
    /// The number of lines before the tests.
    code: usize,
    /// Whether all of it is a test.
    is_test: bool,
}

impl<'a> Source<'a> {
    fn new(file: &'a File, test_modules: &HashSet<String>) -> Self {
        let lines: Vec<&str> = file.text.lines().collect();
        let begins = |pair: &[&str]| {
            is_marker(pair[0]) && pair[1].starts_with("mod ") && pair[1].ends_with('{')
        };
        let tests = lines.windows(2).position(begins);
        let is_test = file.path.contains("/tests/") || test_modules.contains(&file.path);
        Self { file, code: tests.unwrap_or(lines.len()), is_test }
    }

    /// The numbered lines that are not comments, and whether each is in a test.
    fn lines(&self) -> impl Iterator<Item = (usize, &'a str, bool)> {
        let (code, is_test) = (self.code, self.is_test);
        let lines = self.file.text.lines().enumerate();
        lines
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(move |(index, line)| (index + 1, line, is_test || index >= code))
    }

    fn check_length(&self, findings: &mut Findings) {
        let (path, lines) = (&self.file.path, self.file.text.lines().count());
        if LONGER.iter().any(|(longer, _)| longer == path) {
            return;
        }
        let (count, max, description) = match self.code {
            code if code > MOST_CODE => (code, MOST_CODE, "lines of code"),
            _ => (lines, MOST_LINES, "lines with the tests"),
        };
        if count > max {
            findings.add(
                path,
                max,
                &format!("{count} {description}"),
                &format!("split the file: at most {max} are allowed"),
            );
        }
    }

    fn check_banned(&self, findings: &mut Findings) {
        for (index, line) in self.file.text.lines().enumerate().filter(|_| !is_own(self.file)) {
            for (word, right) in BANNED.iter().filter(|(word, _)| line.contains(word)) {
                findings.add(&self.file.path, index + 1, &format!("`{word}`"), right);
            }
        }
    }

    fn check_opening(&self, findings: &mut Findings) {
        let text = &self.file.text;
        if !text.starts_with("//! ") {
            findings.add(
                &self.file.path,
                1,
                "the module has no doc comment",
                "begin the file with `//! ` and a sentence",
            );
        }
        if self.lines().all(|(_, line, _)| line.trim().is_empty()) {
            findings.add(&self.file.path, 1, "the module is empty", "remove it");
        }
    }

    fn check_globs(&self, findings: &mut Findings) {
        let is_glob = |line: &str| ["::*;", "::*,", "::*}"].iter().any(|glob| line.contains(glob));
        for (number, line, in_test) in self.lines().filter(|(_, line, _)| is_glob(line)) {
            let default_value =
                ["use super::*;", "use proptest::prelude::*;"].contains(&line.trim());
            let is_meant = is_own(self.file) || in_test && default_value;
            if !is_meant {
                findings.add(&self.file.path, number, "a glob import", "import each name");
            }
        }
    }

    /// A test that sleeps and then looks is slow on a fast machine and fails on a slow one.
    fn check_sleeps(&self, findings: &mut Findings) {
        let path = &self.file.path;
        // The whole of acceptance is test code.
        let is_test = path.starts_with("acceptance/");
        if path == SLEEPING || is_own(self.file) {
            return;
        }
        for (number, _, in_test) in self.lines().filter(|(_, line, _)| sleeps(line)) {
            if is_test || in_test {
                let right = "wait for a condition with `eventually`, for its absence with `never_within`, and let a \
                             test double be slow with `delay` (crates/test-wait)";
                findings.add(path, number, "a test that sleeps", right);
            }
        }
    }

    /// Code must not compare revisions or dialects: it uses rules.
    fn check_names(&self, findings: &mut Findings) {
        let path = &self.file.path;
        let is_product = path.starts_with("crates/") && path.contains("/src/");
        let is_table = path.starts_with("crates/proto/src/dialect/")
            || ["crates/proto/src/revision.rs", "crates/config/src/presets.rs"].contains(&&**path);
        if !is_product || is_table {
            return;
        }
        for (number, line, _) in self.lines().filter(|(_, _, in_test)| !in_test) {
            let named = |name: &&str| line.contains(&format!("\"{name}\""));
            let revisions = Revision::ALL.map(|revision| revision.rules().name);
            if line.contains("Revision::V2") || revisions.iter().any(named) {
                let right = "use a rule (crates/proto/src/revision.rs)";
                findings.add(path, number, "the code names a revision", right);
            }
            // `spec` is the default dialect, so it may be named.
            if let Some(name) =
                BUILTIN_NAMES.iter().filter(|name| **name != "spec").find(|name| named(name))
            {
                let right = "use a field of the dialect";
                findings.add(path, number, &format!("the code names the dialect `{name}`"), right);
            }
        }
    }

    /// Code must not ask for an era: it asks for the rule that says what differs.
    fn check_eras(&self, findings: &mut Findings) {
        let path = &self.file.path;
        let is_product = path.starts_with("crates/") && path.contains("/src/");
        if !is_product || ERA_TABLES.iter().any(|(table, _)| table == path) {
            return;
        }
        for (number, line, _) in self.lines().filter(|(_, _, in_test)| !in_test) {
            if names_an_era(line) {
                let right = "ask for the rule that differs (crates/proto/src/revision.rs)";
                findings.add(path, number, "code that asks for an era", right);
            }
        }
    }
}

/// Whether code names an era, compares one, or branches on one.
fn names_an_era(line: &str) -> bool {
    let is_variant = |before: &str| !before.ends_with(|char: char| char.is_alphanumeric());
    let names = line.match_indices("Era::").any(|(offset, _)| is_variant(&line[..offset]));
    let compares = [".era ==", ".era !=", ".era() ==", ".era() !="];
    let branch = line.split_once("match ").is_some_and(|(_, subject)| {
        let subject = subject.trim_end_matches([' ', '{']).trim_end_matches("()");
        subject == "era" || subject.ends_with(".era")
    });
    names || branch || compares.iter().any(|comparison| line.contains(comparison))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check(&[File { path: path.into(), text: text.into() }], &mut findings);
        findings.0
    }

    #[test]
    fn a_revision_may_be_named_in_tables_comments_and_tests_only() {
        let text = "//! Of \"2025-03-26\".\nif v == \"2025-03-26\" {}\n";
        let tested =
            "//! A.\nlet a = 1;\n#[cfg(test)]\nmod tests {\nlet a = Revision::V2025_03_26;\n}\n";
        assert_eq!(findings("crates/a/src/a.rs", text).len(), 1);
        assert!(findings("crates/a/src/a.rs", text)[0].starts_with("crates/a/src/a.rs:2: "));
        assert!(findings("crates/a/tests/a.rs", text).is_empty());
        assert!(findings("crates/proto/src/dialect/a.rs", text).is_empty());
        assert!(findings("crates/a/src/a.rs", tested).is_empty());
    }

    #[test]
    fn a_test_waits_with_the_functions_for_it() {
        let text = "//! A.\nuse tokio::time::{sleep, timeout};\nthread::sleep(second);\n";
        assert_eq!(findings("crates/a/tests/a.rs", text).len(), 2);
        assert_eq!(findings("acceptance/src/a.rs", text).len(), 2);
        assert!(findings("acceptance/src/a.rs", text)[1].contains("`eventually`"));
        assert!(findings("crates/a/src/a.rs", text).is_empty(), "the product may sleep");
        assert!(findings("crates/test-wait/src/lib.rs", text).is_empty());
        let tested = format!("//! A.\nlet a = 1;\n#[cfg(test)]\nmod tests {{\n{text}}}\n");
        assert_eq!(findings("crates/a/src/a.rs", &tested).len(), 2);
        let other =
            "//! A.\nlet sql = \"pg_sleep(9)\"; sleeps(thread); let script = \"sleep 9\";\n";
        assert!(findings("crates/a/tests/a.rs", other).is_empty());
    }

    #[test]
    fn an_era_may_be_named_in_its_table_and_in_tests_only() {
        for line in [
            "let a = Era::Handshake;",
            "if rules.era == era {}",
            "if found.era() != era {}",
            "match era {",
            "match connection.greeting().rules.era {",
        ] {
            let text = format!("//! A.\n{line}\n");
            assert_eq!(findings("crates/a/src/a.rs", &text).len(), 1, "{line}");
            assert!(findings("crates/a/tests/a.rs", &text).is_empty(), "{line}");
            assert!(findings("crates/proto/src/revision/era.rs", &text).is_empty(), "{line}");
        }
        for line in ["UpstreamEra::Auto;", "if rules.has_sessions {}", "match operation {"] {
            assert!(
                findings("crates/a/src/a.rs", &format!("//! A.\n{line}\n")).is_empty(),
                "{line}"
            );
        }
    }

    #[test]
    fn a_file_has_an_opening_and_content() {
        assert_eq!(findings("a/a.rs", "fn a() {}\n").len(), 1);
        assert_eq!(findings("a/a.rs", "//! Nothing.\n").len(), 1);
        assert!(findings("a/a.rs", "//! Something.\nfn a() {}\n").is_empty());
    }

    #[test]
    fn tests_at_the_end_do_not_count_as_code() {
        let code = |lines: usize| format!("//! A.\n{}", "a();\n".repeat(lines - 1));
        let tests = |lines: usize| {
            format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "b();\n".repeat(lines - 3))
        };
        assert!(findings("a/a.rs", &code(500)).is_empty());
        assert!(findings("a/a.rs", &(code(500) + &tests(200))).is_empty());
        assert!(
            findings("a/a.rs", &(code(500) + &tests(201)))[0].contains("701 lines with the tests")
        );
        assert!(findings("a/a.rs", &code(501))[0].contains("501 lines of code"));
    }

    #[test]
    fn the_modules_of_tests_are_found_where_they_are_declared() {
        let declared =
            "mod a;\n#[cfg(test)]\nmod b;\nmod c;\n#[cfg(test)]\n#[path = \"d.rs\"]\nmod tests;\n";
        let found = test_modules(&[File { path: "src/x/mod.rs".into(), text: declared.into() }]);
        assert!(found.contains("src/x/b.rs") && found.contains("src/x/d.rs"));
        assert!(!found.contains("src/x/a.rs") && !found.contains("src/x/c.rs"));
    }
}
