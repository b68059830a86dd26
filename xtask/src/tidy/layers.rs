//! Checks that the top-level modules of the library import each other in one direction.
//!
//! A circle of modules can only be read, tested and moved as one. A type that two modules need belongs into the lower
//! one. A method of a lower type that needs a higher module is implemented in the higher one.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::repository::File;

/// The crate whose modules are checked.
const CRATE: &str = "crates/creole/src/";

/// The modules that only export what others define.
const FACADES: &[&str] = &["lib", "internal"];

/// For each module, the modules that it imports, each with one place.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>;

pub(super) fn check(files: &[File], findings: &mut Findings) {
    let imports = imports(files);
    let mut seen = BTreeSet::new();
    for module in imports.keys().copied() {
        let Some(circle) = find_circle(&imports, module) else { continue };
        // The same circle is found from each of its modules.
        if !seen.insert(circle.iter().copied().collect::<BTreeSet<_>>()) {
            continue;
        }
        let (path, line) = imports[circle[0]][circle[1 % circle.len()]];
        let wrong = format!("these modules import each other: {}", circle.join(" -> "));
        findings.add(path, line, &wrong, "move what both need into the lower module");
    }
}

fn imports(files: &[File]) -> Imports<'_> {
    let sources: Vec<(&str, &File)> = files.iter().filter_map(|f| Some((module(f)?, f))).collect();
    let names: BTreeSet<&str> = sources.iter().map(|(name, _)| *name).collect();
    let mut imports = Imports::new();
    for (name, file) in sources {
        for (index, line) in code(&file.text) {
            let found = imported(line).filter(|other| *other != name && names.contains(other));
            for other in found {
                imports.entry(name).or_default().entry(other).or_insert((&file.path, index + 1));
            }
        }
    }
    imports
}

/// The top-level module of a file, unless it is a facade or a test.
fn module(file: &File) -> Option<&str> {
    let path = file.path.strip_prefix(CRATE)?.strip_suffix(".rs")?;
    let is_test = path.split('/').any(|part| part == "tests" || part.ends_with("_tests"));
    let name = path.split('/').next()?;
    (!is_test && !FACADES.contains(&name)).then_some(name)
}

/// The numbered lines before the tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    let is_code = |(_, line): &(usize, &str)| !line.trim_start().starts_with("//");
    lines.take_while(|(_, line)| *line != "mod tests {").filter(is_code)
}

/// The modules that a line names after `crate::`.
fn imported(line: &str) -> impl Iterator<Item = &str> {
    line.split("crate::").skip(1).flat_map(|rest| match rest.strip_prefix('{') {
        // Groups of modules are on one line each.
        Some(group) => group.split(',').map(first_name).collect::<Vec<_>>(),
        None => vec![first_name(rest)],
    })
}

fn first_name(text: &str) -> &str {
    let text = text.trim_start();
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.split(|character| !is_part(character)).next().unwrap_or_default()
}

/// The shortest circle from a module back to itself.
fn find_circle<'a>(imports: &Imports<'a>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut paths = vec![vec![start]];
    let mut visited = BTreeSet::new();
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            let last = path.last()?;
            for next in imports.get(last).into_iter().flat_map(BTreeMap::keys) {
                if *next == start {
                    return Some(path);
                }
                if visited.insert(*next) {
                    longer.push([&path[..], &[*next]].concat());
                }
            }
        }
        paths = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("{CRATE}{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<File> = files.iter().map(file).collect();
        let mut findings = Findings::default();
        check(&files, &mut findings);
        findings.0
    }

    #[test]
    fn a_circle_is_found_once_with_its_place() {
        let found = findings(&[
            ("a.rs", "use crate::b::B;\n"),
            ("b/inner.rs", "use std::io;\n\nuse crate::{random, c};\n"),
            ("c.rs", "fn f() {\n    crate::a::g();\n}\n"),
            ("random.rs", ""),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a.rs:1: ") && found[0].contains("a -> b -> c"), "{found:?}");
    }

    #[test]
    fn tests_comments_facades_and_own_files_are_no_imports() {
        let found = findings(&[
            ("a.rs", "use crate::b::B;\nuse crate::a::inner::A;\n"),
            ("b.rs", "/// See [`crate::a`].\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
            ("b/tests.rs", "use crate::a::A;\n"),
            ("internal.rs", "pub use crate::b::B;\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
