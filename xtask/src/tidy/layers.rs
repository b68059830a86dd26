//! Checks that the modules of a folder import each other in one direction.
//!
//! A circle of modules can only be read, tested and moved as one. A type that two modules need belongs into the lower
//! one. A method of a lower type that needs a higher module is implemented in the higher one.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::repository::File;

/// A module whose child modules are checked.
struct Parent {
    /// The folder of the child modules.
    folder: &'static str,
    /// The path of the module in `use`.
    path: &'static str,
    /// The file of the module itself, if it is above its child modules: they import nothing from it.
    file: Option<&'static str>,
    /// The child modules that only export what others define.
    facades: &'static [&'static str],
}

const PARENTS: &[Parent] = &[LIBRARY, UPSTREAM];

const LIBRARY: Parent = Parent {
    folder: "crates/creole/src/",
    path: "crate::",
    file: None,
    facades: &["lib", "internal"],
};

const UPSTREAM: Parent = Parent {
    folder: "crates/gateway/src/upstream/",
    path: "crate::upstream::",
    file: Some("crates/gateway/src/upstream.rs"),
    facades: &[],
};

/// The name of a parent module in circles with its child modules.
const PARENT: &str = "super";

/// For each module, the modules that it imports, each with one place.
type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, (&'a str, usize)>>;

pub(super) fn check(files: &[File], findings: &mut Findings) {
    for parent in PARENTS {
        check_children(parent, files, findings);
    }
}

fn check_children(parent: &Parent, files: &[File], findings: &mut Findings) {
    let imports = imports(parent, files);
    let mut seen = BTreeSet::new();
    for module in imports.keys().copied() {
        let Some(circle) = find_circle(&imports, module) else { continue };
        // The same circle is found from each of its modules.
        if !seen.insert(circle.iter().copied().collect::<BTreeSet<_>>()) {
            continue;
        }
        let (path, line) = imports[circle[0]][circle[1 % circle.len()]];
        let problem = format!("these modules import each other: {}", circle.join(" -> "));
        findings.add(path, line, &problem, "move what both need into the lower module");
    }
}

fn imports<'a>(parent: &Parent, files: &'a [File]) -> Imports<'a> {
    let of_file = |file: &'a File| Some((module(parent, file)?, file));
    let sources: Vec<(&str, &File)> = files.iter().filter_map(of_file).collect();
    let names: BTreeSet<&str> = sources.iter().map(|(name, _)| *name).collect();
    let mut imports = Imports::new();
    for (name, file) in sources {
        let relative = path_to_parent(parent, file);
        for (index, line) in code(&file.text) {
            let absolute = imported(parent.path, line);
            let relative = relative.iter().flat_map(|path| imported(path, line));
            let found = absolute.chain(relative).filter_map(|other| match names.contains(other) {
                true => Some(other),
                false => parent.file.map(|_| PARENT),
            });
            for other in found.filter(|other| *other != name) {
                imports.entry(name).or_default().entry(other).or_insert((&file.path, index + 1));
            }
        }
    }
    imports
}

/// The child module of a file, unless it is a facade or a test.
fn module<'a>(parent: &Parent, file: &'a File) -> Option<&'a str> {
    if parent.file == Some(&file.path) {
        return Some(PARENT);
    }
    let path = file.path.strip_prefix(parent.folder)?.strip_suffix(".rs")?;
    let is_test = path.split('/').any(|part| part == "tests" || part.ends_with("_tests"));
    let name = path.split('/').next()?;
    (!is_test && !parent.facades.contains(&name)).then_some(name)
}

/// The numbered lines before the tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    let is_code = |(_, line): &(usize, &str)| !line.trim_start().starts_with("//");
    lines.take_while(|(_, line)| *line != "mod tests {").filter(is_code)
}

/// The relative path of the parent in a file of a child module.
fn path_to_parent(parent: &Parent, file: &File) -> Option<String> {
    let path = file.path.strip_prefix(parent.folder)?;
    Some("super::".repeat(path.split('/').count()))
}

/// The names that follow the path of the parent in a line.
fn imported<'a>(path: &str, line: &'a str) -> impl Iterator<Item = &'a str> {
    let names = line.split(path).skip(1).flat_map(|rest| match rest.strip_prefix('{') {
        // Groups of modules are on one line each.
        Some(group) => group.split(',').map(first_name).collect::<Vec<_>>(),
        None => vec![first_name(rest)],
    });
    names.filter(|name| !name.is_empty())
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

    fn findings(folder: &str, files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| File {
            path: format!("{folder}{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<File> = files.iter().map(file).collect();
        let mut findings = Findings::default();
        check(&files, &mut findings);
        findings.0
    }

    #[test]
    fn a_circle_is_found_once_with_its_place() {
        let found = findings(
            LIBRARY.folder,
            &[
                ("a.rs", "use crate::b::B;\n"),
                ("b/inner.rs", "use std::io;\n\nuse crate::{random, c};\n"),
                ("c.rs", "fn f() {\n    crate::a::g();\n}\n"),
                ("random.rs", ""),
            ],
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a.rs:1: ") && found[0].contains("a -> b -> c"), "{found:?}");
    }

    #[test]
    fn tests_comments_facades_and_own_files_are_no_imports() {
        let found = findings(
            LIBRARY.folder,
            &[
                ("a.rs", "use crate::b::B;\nuse crate::a::inner::A;\n"),
                (
                    "b.rs",
                    "/// See [`crate::a`].\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
                ),
                ("b/tests.rs", "use crate::a::A;\n"),
                ("internal.rs", "pub use crate::b::B;\n"),
            ],
        );
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_child_module_imports_nothing_from_a_parent_that_is_above_it() {
        let check = |child| {
            let user = "use crate::upstream::a::A;\n";
            let files = [("upstream.rs", user), ("upstream/a.rs", child), ("upstream/b.rs", user)];
            findings("crates/gateway/src/", &files)
        };
        assert!(check("use crate::layers::Chain;\n").is_empty());
        let found = check("use crate::upstream::Upstream;\n");
        assert!(found.len() == 1 && found[0].contains("upstream/a.rs:1: "), "{found:?}");
        let found = check("fn f() {\n    super::g();\n}\n");
        assert!(found.len() == 1 && found[0].contains("upstream/a.rs:2: "), "{found:?}");
        let found = check("use crate::upstream::b::B;\n");
        assert!(found.len() == 1 && found[0].contains("a -> b"), "{found:?}");
    }
}
