//! Reads which modules of a crate name which others: in `use`, and by a path that starts with `crate`, `self` or
//! `super`. A name that another module exports again counts as the module that defines it.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::File;

/// The path of a module from the root of its crate.
pub(super) type ModulePath = Vec<String>;

/// A module that names another.
pub(super) struct Import<'a> {
    pub(super) from: ModulePath,
    pub(super) to: ModulePath,
    /// The file and the line, from one.
    pub(super) place: (&'a str, usize),
}

/// How many exports of exports are followed.
const MAX_EXPORTS: usize = 8;

/// The imports between the modules of the crate whose source folder this is. Tests are left out.
pub(super) fn imports<'a>(folder: &str, files: &'a [File]) -> Vec<Import<'a>> {
    let crate_files = CrateFiles::new(folder, files);
    let named: Vec<NamedPath<'_>> = crate_files.named_paths();
    let mut exports = BTreeMap::new();
    for path in &named {
        if let Some(name) = &path.imported_as {
            exports.entry((path.from.clone(), name.clone())).or_insert(path.target.clone());
        }
    }
    let resolve = |path: NamedPath<'a>| Import {
        to: crate_files.resolve(&exports, path.target),
        from: path.from,
        place: path.place,
    };
    named.into_iter().map(resolve).collect()
}

/// A path that a module names, from the root of the crate.
struct NamedPath<'a> {
    from: ModulePath,
    target: Vec<String>,
    /// The name in the module, if the path is in `use`.
    imported_as: Option<String>,
    place: (&'a str, usize),
}

/// The source files of a crate.
struct CrateFiles<'a> {
    modules: BTreeMap<ModulePath, &'a File>,
}

impl<'a> CrateFiles<'a> {
    fn new(folder: &str, files: &'a [File]) -> Self {
        let module = |file: &'a File| {
            let path = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            let parts = path.split('/').map(str::to_owned).collect::<ModulePath>();
            let is_root = matches!(path, "lib" | "main");
            Some((if is_root { ModulePath::new() } else { parts }, file))
        };
        let mut modules: BTreeMap<ModulePath, &File> = files.iter().filter_map(module).collect();
        let is_test = |path: &ModulePath| {
            let in_tests = path.iter().any(|part| part == "tests" || part.ends_with("_tests"));
            in_tests
                || (1..=path.len()).any(|length| is_declared_for_tests(&modules, &path[..length]))
        };
        let tests: BTreeSet<ModulePath> =
            modules.keys().filter(|path| is_test(path)).cloned().collect();
        modules.retain(|path, _| !tests.contains(path));
        Self { modules }
    }

    fn named_paths(&self) -> Vec<NamedPath<'a>> {
        let mut named = Vec::new();
        for (module, file) in &self.modules {
            for (line, path, imported_as) in written_paths(&file.text) {
                if let Some(target) = self.absolute(module, &path) {
                    let place = (&*file.path, line);
                    named.push(NamedPath { from: module.clone(), target, imported_as, place });
                }
            }
        }
        named
    }

    /// The path from the root of the crate; `None` for a path of another crate.
    fn absolute(&self, module: &ModulePath, path: &str) -> Option<Vec<String>> {
        let mut parts: Vec<&str> = path.split("::").filter(|part| !part.is_empty()).collect();
        let mut base = module.clone();
        match *parts.first()? {
            "crate" => base.clear(),
            "self" => {}
            "super" => {
                base.pop();
            }
            child => {
                let path = [module, &[child.to_owned()][..]].concat();
                self.modules.contains_key(&path).then_some(())?;
                parts.insert(0, "self");
            }
        }
        for part in &parts[1..] {
            match *part {
                "super" => drop(base.pop()),
                "self" | "*" => {}
                part => base.push(part.to_owned()),
            }
        }
        Some(base)
    }

    /// The module that defines a name.
    fn resolve(
        &self,
        exports: &BTreeMap<(ModulePath, String), Vec<String>>,
        mut path: Vec<String>,
    ) -> ModulePath {
        for _ in 0..MAX_EXPORTS {
            let is_module = |length: &usize| self.modules.contains_key(&path[..*length]);
            let length = (0..=path.len()).rev().find(is_module).unwrap_or(0);
            let module = path[..length].to_vec();
            let Some(name) = path.get(length) else { return module };
            match exports.get(&(module.clone(), name.clone())) {
                Some(export) if export[..] != path[..=length] => {
                    path = [&export[..], &path[length + 1..]].concat();
                }
                _ => return module,
            }
        }
        path
    }
}

/// Whether the parent of a module declares it only for tests.
fn is_declared_for_tests(modules: &BTreeMap<ModulePath, &File>, path: &[String]) -> bool {
    let Some((name, parent)) = path.split_last() else { return false };
    let Some(file) = modules.get(parent) else { return false };
    let declaration = format!("mod {name};");
    let mut lines = file.text.lines().zip(file.text.lines().skip(1));
    lines.any(|(before, line)| before == "#[cfg(test)]" && line.ends_with(&declaration))
}

/// The paths in a text, each with its line and, in `use`, the name that it gets.
fn written_paths(text: &str) -> Vec<(usize, String, Option<String>)> {
    let mut found = Vec::new();
    let mut statement: Option<(usize, String)> = None;
    for (index, line) in code(text) {
        let line = line.trim();
        if let Some((_, tree)) = &mut statement {
            tree.push_str(line);
        } else if let Some(tree) = import_tree(line) {
            statement = Some((index + 1, tree.to_owned()));
        } else {
            found.extend(inline_paths(line).map(|path| (index + 1, path.to_owned(), None)));
        }
        if let Some((line, tree)) = statement.take_if(|(_, tree)| tree.ends_with(';')) {
            for path in leaves(tree.trim_end_matches(';')) {
                let (path, alias) = path.split_once(" as ").unwrap_or((&path, ""));
                let name = path.rsplit("::").find(|part| *part != "self").unwrap_or_default();
                let name = if alias.is_empty() { name } else { alias };
                found.push((line, path.to_owned(), Some(name.to_owned())));
            }
        }
    }
    found
}

/// The numbered lines before the tests, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    let is_code = |(_, line): &(usize, &str)| !line.trim_start().starts_with("//");
    lines.take_while(|(_, line)| *line != "mod tests {").filter(is_code)
}

/// The tree of a `use`.
fn import_tree(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    rest.strip_prefix("use ")
}

/// The paths outside of `use` that name a module of the same crate.
fn inline_paths(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_:".contains(character);
    let starts = ["crate::", "self::", "super::"];
    let words = line.split(move |character| !is_part(character));
    words.filter(move |word| starts.iter().any(|start| word.starts_with(start)))
}

/// The paths of a tree such as `a::{b, c::{d, e as f}}`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, group)) = tree.split_once('{') else {
        return if tree.is_empty() { Vec::new() } else { vec![tree.to_owned()] };
    };
    let group = group.strip_suffix('}').unwrap_or(group);
    let mut depth = 0_usize;
    let parts = group.split(|character| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.flat_map(leaves).map(|leaf| format!("{prefix}{leaf}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_expanded_to_its_paths() {
        assert_eq!(
            leaves("a::{b, c::{d, e as f}, self}"),
            ["a::b", "a::c::d", "a::c::e as f", "a::self"]
        );
        assert_eq!(leaves("crate::a::{b,}"), ["crate::a::b"]);
    }

    #[test]
    fn paths_are_read_from_imports_of_several_lines_and_from_code() {
        let text = "pub(crate) use super::{\n    a::A,\n    b,\n};\n// use super::c;\nfn f() -> crate::d::D {\n}\n";
        let found = written_paths(text);
        let paths: Vec<_> = found.iter().map(|(line, path, _)| (*line, &**path)).collect();
        assert_eq!(paths, [(1, "super::a::A"), (1, "super::b"), (6, "crate::d::D")]);
    }
}
