//! Names of types and files, and first lines of modules: one concept has one word (docs/glossary.md).

use std::collections::BTreeMap;

use super::Findings;
use crate::repository::File;

/// Words that replace the name of a thing, or have no meaning.
const BANNED_IN_MODULE_DOCS: &[&str] =
    &["who", "whoever", "somebody", "nobody", "errand", "heir", "anew"];

/// Participles and locations that do not name a kind of thing.
const BANNED_NAMES: &[&str] = &[
    "Asked", "Begun", "Desk", "Errand", "Found", "Given", "Heard", "Hub", "Kept", "Place",
    "Served", "Spot", "Standing", "Told", "Trouble",
];

/// Words that the glossary replaces, and words for any file. They are banned in names of files and folders, as are
/// the banned words of module docs and names of types.
const BANNED_IN_FILE_NAMES: &[&str] = &[
    "conclude",
    "deaf",
    "errands",
    "farewell",
    "goodbye",
    "helper",
    "helpers",
    "hush",
    "misc",
    "patience",
    "renewal",
    "rising",
    "said",
    "successor",
    "telling",
    "util",
    "utils",
];

/// Words that do not say what a local variable holds.
const BANNED_LOCALS: &[&str] = &[
    "asides",
    "attendant",
    "doors",
    "ender",
    "errand",
    "errands",
    "handover",
    "happening",
    "heir",
    "heirs",
    "honoured",
    "overseer",
    "puppet",
    "puppets",
    "shelf",
    "strikes",
    "thrown",
    "tongue",
    "vault",
    "whose",
    "workshop",
];

/// The maximum number of types of one name in the crates.
const MAX_TYPES_OF_ONE_NAME: usize = 2;

pub(super) fn check(files: &[File], findings: &mut Findings) {
    let mut types: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_source_of_a_crate(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            check_module_doc(file, index, line, findings);
            if let Some(name) = declared_type(line) {
                types.entry(name).or_default().push((&file.path, index + 1));
            }
        }
    }
    for (name, places) in types {
        check_name(name, &places, findings);
    }
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        check_path(&file.path, findings);
        if !super::is_own(file) && !file.path.starts_with("acceptance/peers/") {
            check_locals(file, findings);
        }
    }
}

/// Checks the names of local variables: `let NAME`, `for NAME in` and `|NAME|`.
fn check_locals(file: &File, findings: &mut Findings) {
    for (index, line) in file.text.lines().enumerate() {
        if let Some(name) = declared_local(line).filter(|name| BANNED_LOCALS.contains(name)) {
            let problem = format!("a local variable `{name}`");
            findings.add(&file.path, index + 1, &problem, "name the value, see docs/glossary.md");
        }
    }
}

/// The first local variable that a line of code declares alone.
fn declared_local(line: &str) -> Option<&str> {
    let code = line.trim_start();
    if code.starts_with("//") {
        return None;
    }
    let is_name = |text: &&str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    if let Some(rest) = code.strip_prefix("let ").or_else(|| code.strip_prefix("for ")) {
        let rest = rest.strip_prefix("mut ").unwrap_or(rest);
        return rest.split([' ', ':']).next().filter(is_name);
    }
    code.split('|').skip(1).step_by(2).find(is_name)
}

/// Checks the names of a source file and of its folders.
fn check_path(path: &str, findings: &mut Findings) {
    let words = path.trim_end_matches(".rs").split(['/', '_', '-']);
    let is_banned = |word: &&str| {
        BANNED_IN_FILE_NAMES.contains(word)
            || BANNED_IN_MODULE_DOCS.contains(word)
            || BANNED_NAMES.iter().any(|name| name.eq_ignore_ascii_case(word))
    };
    for word in words.filter(is_banned) {
        let problem = format!("`{word}` in the name of a file");
        findings.add(path, 1, &problem, "name what the file defines, see docs/glossary.md");
    }
}

fn is_source_of_a_crate(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && path.ends_with(".rs")
}

fn check_module_doc(file: &File, index: usize, line: &str, findings: &mut Findings) {
    let Some(text) = line.trim_start().strip_prefix("//!") else { return };
    // Quoted text is the text of an example.
    let unquoted = text.split('"').step_by(2);
    let mut words = unquoted.flat_map(|text| text.split(|char: char| !char.is_alphanumeric()));
    if let Some(word) = words.find(|word| BANNED_IN_MODULE_DOCS.contains(&&*word.to_lowercase())) {
        findings.add(
            &file.path,
            index + 1,
            &format!("`{word}`"),
            "name the thing instead (docs/glossary.md)",
        );
    }
}

/// The name of the type or trait that a line at the outermost level declares.
fn declared_type(line: &str) -> Option<&str> {
    if line.starts_with(' ') {
        return None;
    }
    let rest = match line.strip_prefix("pub") {
        Some(rest) => rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let after =
        ["struct ", "enum ", "trait ", "type "].iter().find_map(|text| rest.strip_prefix(text))?;
    after
        .split(|char: char| !char.is_alphanumeric() && char != '_')
        .next()
        .filter(|name| !name.is_empty())
}

fn check_name(name: &str, places: &[(&str, usize)], findings: &mut Findings) {
    let (path, line) = places[0];
    if BANNED_NAMES.contains(&name) {
        findings.add(
            path,
            line,
            &format!("a type `{name}`"),
            "choose a noun that names the kind of thing (docs/glossary.md)",
        );
    }
    if let Some((path, line)) = places.get(MAX_TYPES_OF_ONE_NAME) {
        let problem = format!("{} types have the name `{name}`", places.len());
        findings.add(path, *line, &problem, "give each concept its own name");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<File> = files
            .iter()
            .map(|(path, text)| File { path: (*path).into(), text: (*text).into() })
            .collect();
        let mut findings = Findings::default();
        check(&files, &mut findings);
        findings.0
    }

    #[test]
    fn a_word_that_names_nothing_is_reported_in_the_doc_of_a_module() {
        let path = "crates/creole/src/a.rs";
        assert!(findings(&[(path, "//! Nobody waits.\n")])[0].contains("`Nobody`"));
        assert!(
            findings(&[(path, "/// Nobody waits.\n"), (path, "//! A session waits.\n")]).is_empty()
        );
    }

    #[test]
    fn a_file_is_named_after_its_definition() {
        let named = |path| findings(&[(path, "//! A session.\n")]);
        for path in ["crates/a/tests/b/said.rs", "acceptance/src/told/a.rs", "a/time_utils.rs"] {
            assert!(named(path)[0].contains("in the name of a file"), "{path}");
        }
        assert!(named("crates/a/src/placement.rs").is_empty(), "only whole words count");
        assert!(named("crates/a/src/unsubscribe.rs").is_empty());
    }

    #[test]
    fn a_local_variable_says_what_it_holds() {
        let path = "crates/creole/src/a.rs";
        for line in [
            "    let errand = 1;",
            "let mut errand: u8 = 1;",
            "for errand in 0..2 {",
            "a.map(|errand| errand)",
        ] {
            assert!(findings(&[(path, line)])[0].contains("a local variable `errand`"), "{line}");
        }
        for line in [
            "// let errand = 1;",
            "let errand_twice = 1;",
            "let message = errand(1);",
            "a | errand | b",
        ] {
            assert!(findings(&[(path, line)]).is_empty(), "{line}");
        }
    }

    #[test]
    fn a_type_has_a_name_of_its_own() {
        let named = |path| (path, "pub(crate) struct Slot<T>(T);\n");
        let two = [named("crates/a/src/a.rs"), named("crates/a/src/b.rs")];
        assert!(findings(&two).is_empty());
        let three = [two[0], two[1], named("crates/a/src/c.rs")];
        assert!(findings(&three)[0].contains("3 types have the name `Slot`"));
        assert!(findings(&[("crates/a/src/a.rs", "enum Told {}\n")])[0].contains("a type `Told`"));
    }
}
