//! The index of a server's skills: skills and files by URI, and the directories that the files form.

use std::collections::BTreeMap;
use std::sync::Arc;

use creole_proto::model::{Definition, ListKind, Resource};

use super::catalogue::Catalogue;
use super::viewer::Layers;
use crate::item::skill::{SCHEME, Skill, SkillError, SkillFile};

/// The media type of a directory resource (SEP-2640, directory resources).
const DIRECTORY_TYPE: &str = "inode/directory";

/// The skills of a server.
pub(super) struct SkillIndex {
    pub(super) skills: Catalogue<Skill>,
    /// The files of all skills; a skill inside another one shares its files with it.
    files: BTreeMap<String, Arc<SkillFile>>,
}

impl SkillIndex {
    /// An empty index whose skills will be shown through these layers.
    pub(super) fn new(layers: &Layers) -> Self {
        Self { skills: Catalogue::new(ListKind::Skills, layers), files: BTreeMap::new() }
    }

    /// Adds a skill, or replaces the one with the same URI.
    pub(super) fn insert(&mut self, skill: Skill) -> Result<(), SkillError> {
        let replaces = self.skills.get(skill.uri()).is_some();
        let kept = replaces
            .then(|| files_of(self.skills.iter().filter(|other| other.uri() != skill.uri())));
        let files = kept.as_ref().unwrap_or(&self.files);
        let differs = |file: &&Arc<SkillFile>| {
            files.get(file.uri()).is_some_and(|other| other.digest != file.digest)
        };
        if let Some(file) = skill.files().iter().find(differs) {
            let message = format!("another skill has a different file at {}", file.uri());
            let help = "a file that two skills share must be identical";
            return Err(SkillError::whole_skill(message).help(help));
        }
        if let Some(kept) = kept {
            self.files = kept;
        }
        let added = skill.files().iter().map(|file| (file.uri().to_owned(), Arc::clone(file)));
        self.files.extend(added);
        self.skills.insert(Definition::clone(skill.definition()), skill);
        Ok(())
    }

    pub(super) fn remove(&mut self, uri: &str) -> bool {
        let removed = self.skills.remove(uri);
        self.files = files_of(self.skills.iter());
        removed
    }

    pub(super) fn file(&self, uri: &str) -> Option<&Arc<SkillFile>> {
        self.files.get(uri)
    }

    /// The direct children of a directory; `None` if it does not exist.
    pub(super) fn directory(&self, uri: &str) -> Option<Vec<Arc<Definition>>> {
        let path =
            uri.strip_prefix(SCHEME).filter(|path| !path.is_empty() && !path.ends_with('/'))?;
        let (inside, depth) = (format!("{uri}/"), path.matches('/').count() + 1);
        let below =
            self.files.range(inside.clone()..).map(|(location, file)| (location.as_str(), file));
        let mut children: Vec<Arc<Definition>> = Vec::new();
        for (location, file) in below.take_while(|(location, _)| location.starts_with(&inside)) {
            let Some((folder, _)) = location[inside.len()..].split_once('/') else {
                children.push(Arc::clone(&file.definition));
                continue;
            };
            let child = format!("{inside}{folder}");
            // The files of one folder are adjacent, because they have a common prefix up to its slash.
            if children.last().is_none_or(|last| last.name() != child) {
                let name = file.path.split('/').nth(depth).unwrap_or(folder);
                children.push(Arc::new(subdirectory(child, name)));
            }
        }
        (!children.is_empty()).then_some(children)
    }
}

fn files_of<'a>(skills: impl Iterator<Item = &'a Arc<Skill>>) -> BTreeMap<String, Arc<SkillFile>> {
    let files = skills.flat_map(|skill| skill.files());
    files.map(|file| (file.uri().to_owned(), Arc::clone(file))).collect()
}

fn subdirectory(uri: String, name: &str) -> Definition {
    let mime_type = Some(DIRECTORY_TYPE.to_owned());
    (&Resource { uri, name: name.to_owned(), mime_type, ..Resource::default() }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> SkillIndex {
        let layers: Layers = Arc::new([]);
        SkillIndex::new(&layers)
    }

    fn skill(path: &str, more: &[(&str, &str)]) -> Skill {
        let name = path.rsplit('/').next().unwrap();
        let front = format!("---\nname: {name}\ndescription: x\n---\n");
        let more = more.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned()));
        let files = more.chain([("SKILL.md".to_owned(), front)]);
        Skill::new(path, files.map(|(file, text)| (file, text.into_bytes()))).unwrap()
    }

    fn names(index: &SkillIndex, uri: &str) -> Option<Vec<String>> {
        let listed = index.directory(uri)?;
        Some(listed.iter().map(|child| child.name().to_owned()).collect())
    }

    #[test]
    fn a_file_that_two_skills_share_stays_as_long_as_one_of_them() {
        let mut index = empty();
        let inner = "---\nname: inner\ndescription: x\n---\n";
        index.insert(skill("outer", &[("inner/SKILL.md", inner), ("a.md", "")])).unwrap();
        index.insert(skill("outer/inner", &[])).unwrap();
        assert!(index.remove("skill://outer/SKILL.md"));
        assert!(!index.remove("skill://outer/SKILL.md"));
        assert!(index.file("skill://outer/inner/SKILL.md").is_some());
        assert!(index.file("skill://outer/a.md").is_none());
    }

    #[test]
    fn a_skill_that_says_something_else_of_the_same_file_is_refused_and_nothing_changes() {
        let mut index = empty();
        index.insert(skill("outer", &[("inner/SKILL.md", "other"), ("a.md", "")])).unwrap();
        let refusal = index.insert(skill("outer/inner", &[("b.md", "")])).unwrap_err();
        assert!(refusal.message.contains("skill://outer/inner/SKILL.md"), "{refusal}");
        assert!(index.skills.get("skill://outer/inner/SKILL.md").is_none());
        assert!(index.file("skill://outer/inner/b.md").is_none());
        assert!(index.file("skill://outer/a.md").is_some());
    }

    #[test]
    fn a_replaced_skill_leaves_no_files() {
        let mut index = empty();
        index.insert(skill("one", &[("old.md", "1"), ("same.md", "1")])).unwrap();
        index.insert(skill("one", &[("new.md", "2"), ("same.md", "2")])).unwrap();
        let expected = ["skill://one/SKILL.md", "skill://one/new.md", "skill://one/same.md"];
        assert_eq!(names(&index, "skill://one").unwrap(), expected);
    }

    #[test]
    fn a_directory_has_each_child_once_and_nothing_of_its_neighbours() {
        let mut index = empty();
        let files = [("a/1", ""), ("a/b/2", ""), ("a-b", ""), ("a b/3", ""), ("a.md", "")];
        index.insert(skill("one", &files)).unwrap();
        index.insert(skill("one-more", &[])).unwrap();
        let expected =
            ["SKILL.md", "a%20b", "a-b", "a.md", "a"].map(|text| format!("skill://one/{text}"));
        assert_eq!(names(&index, "skill://one").unwrap(), expected);
        assert_eq!(names(&index, "skill://one/a").unwrap(), ["skill://one/a/1", "skill://one/a/b"]);
        for none in [
            "",
            "skill",
            "skill:",
            "skill:/",
            "skill://",
            "skill://one/",
            "skill://on",
            "skill://one/a-b",
        ] {
            assert_eq!(names(&index, none), None, "{none}");
        }
    }
}
