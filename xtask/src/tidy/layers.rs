//! Checks that the modules of every folder import each other in one direction.
//!
//! A circle of modules can only be read, tested and moved as one. A type that two modules need belongs into the lower
//! one. A method of a lower type that needs a higher module is implemented in the higher one. A module and its own
//! child modules are one: between them every direction is allowed, except for the modules of [`ABOVE_CHILDREN`].

mod imports;

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::repository::File;
use imports::Import;

/// The modules that only export what others define.
const FACADES: &[&str] = &["crates/creole/src/internal"];

/// The modules that are above their child modules: those import nothing from them.
const ABOVE_CHILDREN: &[&str] = &["crates/gateway/src/upstream"];

/// The name of a module in circles with its child modules.
const PARENT: &str = "super";

/// An import against the direction of its folder that is accepted.
struct Exception {
    folder: &'static str,
    from: &'static str,
    to: &'static str,
}

/// The exceptions, each with its reason.
const EXCEPTIONS: &[Exception] = &[
    // A session sends its calls, and a call answers input requests of its session.
    Exception {
        folder: "crates/gateway/src/upstream/connections",
        from: "session_client",
        to: "active_calls",
    },
    Exception {
        folder: "crates/gateway/src/upstream/connections",
        from: "session_client",
        to: "pool",
    },
    // A task that ended contains a result, and a result may be a task: the encoders call each other.
    Exception { folder: "crates/proto/src/encode", from: "task", to: "result" },
    // `recipe` builds tools of all kinds; its values (secrets, templates, encoded URLs) are used by each kind.
    Exception { folder: "crates/tools/src", from: "database", to: "recipe" },
    Exception { folder: "crates/tools/src", from: "openapi", to: "recipe" },
    // A site holds the users that logged in, and a login asks the site.
    Exception { folder: "crates/wordpress/src", from: "site", to: "login" },
    // A tool is data with an optional function, which takes the call of the tool.
    Exception { folder: "crates/wordpress/src/tools", from: "spec", to: "tool_call" },
];

/// The imports between the modules of one folder: for each module the modules that it imports, each with one place.
type Imports<'a> = BTreeMap<String, BTreeMap<String, (&'a str, usize)>>;

pub(super) fn check(files: &[File], findings: &mut Findings) {
    let mut unused: BTreeSet<usize> = (0..EXCEPTIONS.len()).collect();
    for (folder, mut imports) in folders(files) {
        for (index, exception) in EXCEPTIONS.iter().enumerate() {
            let targets = imports.get_mut(exception.from).filter(|_| exception.folder == folder);
            if targets.is_some_and(|targets| targets.remove(exception.to).is_some()) {
                unused.remove(&index);
            }
        }
        report_circles(&imports, findings);
    }
    let is_checked = |exception: &Exception| {
        files.iter().any(|file| file.path.starts_with(&format!("{}/", exception.folder)))
    };
    for exception in unused.into_iter().map(|index| &EXCEPTIONS[index]).filter(|it| is_checked(it))
    {
        let Exception { folder, from, to } = exception;
        let problem = format!("the exception for `{from}` -> `{to}` in {folder} is not needed");
        findings.add("xtask/src/tidy/layers.rs", 1, &problem, "remove it");
    }
}

fn report_circles(imports: &Imports<'_>, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    for module in imports.keys() {
        let Some(circle) = find_circle(imports, module) else { continue };
        // The same circle is found from each of its modules.
        if !seen.insert(circle.iter().copied().collect::<BTreeSet<_>>()) {
            continue;
        }
        let (path, line) = imports[circle[0]][circle[1 % circle.len()]];
        let problem = format!("these modules import each other: {}", circle.join(" -> "));
        findings.add(path, line, &problem, "move what both need into the lower module");
    }
}

/// The imports of every folder of every crate.
fn folders(files: &[File]) -> BTreeMap<String, Imports<'_>> {
    let sources = files.iter().filter_map(|file| {
        let (name, _) = file.path.strip_prefix("crates/")?.split_once("/src/")?;
        Some(format!("crates/{name}/src"))
    });
    let mut folders: BTreeMap<String, Imports<'_>> = BTreeMap::new();
    for source in sources.collect::<BTreeSet<String>>() {
        for Import { from, to, place } in imports::imports(&format!("{source}/"), files) {
            let full = |parts: &[String]| [std::slice::from_ref(&source), parts].concat().join("/");
            if from.is_empty() || FACADES.contains(&&*full(&from)) {
                continue;
            }
            let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
            let folder = full(&from[..common]);
            let is_above = ABOVE_CHILDREN.contains(&&*folder);
            let name = |path: &[String]| match path.get(common) {
                Some(name) => Some(name.clone()),
                None => is_above.then(|| PARENT.to_owned()),
            };
            if let (Some(from), Some(to)) = (name(&from), name(&to))
                && from != to
            {
                let imports = folders.entry(folder).or_default();
                imports.entry(from).or_default().entry(to).or_insert(place);
            }
        }
    }
    folders
}

/// The shortest circle from a module back to itself.
fn find_circle<'a>(imports: &'a Imports<'_>, start: &'a str) -> Option<Vec<&'a str>> {
    let mut paths = vec![vec![start]];
    let mut visited = BTreeSet::new();
    while !paths.is_empty() {
        let mut longer = Vec::new();
        for path in paths {
            let last = *path.last()?;
            for next in imports.get(last).into_iter().flat_map(BTreeMap::keys) {
                if next == start {
                    return Some(path);
                }
                if visited.insert(next) {
                    longer.push([&path[..], &[next.as_str()]].concat());
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
        let files = [
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", ""),
            ("b/inner.rs", "use std::io;\n\nuse crate::{random, c};\n"),
            ("c.rs", "fn f() {\n    crate::a::g();\n}\n"),
            ("random.rs", ""),
        ];
        let found = findings("crates/x/src/", &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a.rs:1: ") && found[0].contains("a -> b -> c"), "{found:?}");
    }

    #[test]
    fn tests_comments_facades_and_own_files_are_no_imports() {
        let files = [
            ("a.rs", "use crate::b::B;\nuse crate::a::inner::A;\n"),
            ("a/inner.rs", "use super::A;\n"),
            (
                "b.rs",
                "/// See [`crate::a`].\n#[cfg(test)]\nmod samples;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n",
            ),
            ("b/samples.rs", "use crate::a::A;\n"),
            ("b/tests.rs", "use crate::a::A;\n"),
            ("internal.rs", "pub use crate::b::B;\n"),
            ("lib.rs", "pub use a::A;\n"),
        ];
        let found = findings("crates/creole/src/", &files);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn a_circle_is_found_in_an_inner_folder_and_through_exports_of_the_parent() {
        let files = [
            ("lib.rs", ""),
            ("outer.rs", "mod a;\nmod b;\npub use a::A;\n"),
            ("outer/a.rs", "use super::b;\n"),
            ("outer/b.rs", "use crate::outer::A;\n"),
        ];
        let found = findings("crates/x/src/", &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("outer/a.rs:1: ") && found[0].contains("a -> b"), "{found:?}");
    }

    #[test]
    fn a_child_module_imports_nothing_from_a_parent_that_is_above_it() {
        let check = |child| {
            let user = "use crate::upstream::a::A;\n";
            let files = [("upstream.rs", user), ("upstream/a.rs", child), ("upstream/b.rs", user)];
            findings("crates/gateway/src/", &files)
        };
        let is_at = |found: &[String], place: &str| found.iter().any(|line| line.contains(place));
        let unneeded = |found: Vec<String>| -> Vec<String> {
            found.into_iter().filter(|line| !line.contains("is not needed")).collect()
        };
        assert!(unneeded(check("use crate::layers::Chain;\n")).is_empty());
        let found = unneeded(check("use crate::upstream::Upstream;\n"));
        assert!(found.len() == 1 && is_at(&found, "upstream/a.rs:1: "), "{found:?}");
        let found = unneeded(check("fn f() {\n    super::g();\n}\n"));
        assert!(found.len() == 1 && is_at(&found, "upstream/a.rs:2: "), "{found:?}");
        let found = unneeded(check("use crate::upstream::b::B;\n"));
        assert!(found.len() == 1 && is_at(&found, "a -> b"), "{found:?}");
    }
}
