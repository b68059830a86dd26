//! The skills of a server: found by their uris, their files by theirs, and the folders that the files make.

use std::collections::BTreeMap;
use std::sync::Arc;

use creole_proto::model::{Definition, Resource};

use super::catalogue::Catalogue;
use crate::skill::{SCHEME, Skill, SkillError, SkillFile};

/// The media type of what can be read as a directory (SEP-2640, directory resources).
const DIRECTORY: &str = "inode/directory";

/// The skills of a server.
#[derive(Default)]
pub(super) struct Shelf {
    pub(super) skills: Catalogue<Skill>,
    /// The files of all skills; those of a skill inside of another one belong to both.
    files: BTreeMap<String, Arc<SkillFile>>,
}

impl Shelf {
    /// Adds a skill, or replaces the one at its uri.
    pub(super) fn insert(&mut self, skill: Skill) -> Result<(), SkillError> {
        let replaces = self.skills.get(skill.uri()).is_some();
        let kept = replaces
            .then(|| files_of(self.skills.iter().filter(|other| other.uri() != skill.uri())));
        let files = kept.as_ref().unwrap_or(&self.files);
        let differs = |file: &&Arc<SkillFile>| {
            files.get(file.uri()).is_some_and(|other| other.digest != file.digest)
        };
        if let Some(file) = skill.files().iter().find(differs) {
            let what = format!("another skill has a different file at {}", file.uri());
            let help = "a file that two skills share is the same for both";
            return Err(SkillError::of_skill(what).help(help));
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

    /// What is directly in a directory, or nothing if there is no such directory.
    pub(super) fn directory(&self, uri: &str) -> Option<Vec<Arc<Definition>>> {
        let path =
            uri.strip_prefix(SCHEME).filter(|path| !path.is_empty() && !path.ends_with('/'))?;
        let (inside, depth) = (format!("{uri}/"), path.matches('/').count() + 1);
        let below = self.files.range(inside.clone()..).map(|(place, file)| (place.as_str(), file));
        let mut children: Vec<Arc<Definition>> = Vec::new();
        for (place, file) in below.take_while(|(place, _)| place.starts_with(&inside)) {
            let Some((folder, _)) = place[inside.len()..].split_once('/') else {
                children.push(Arc::clone(&file.definition));
                continue;
            };
            let child = format!("{inside}{folder}");
            // The files of one folder stand together, because they begin alike up to its slash.
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
    let mime_type = Some(DIRECTORY.to_owned());
    (&Resource { uri, name: name.to_owned(), mime_type, ..Resource::default() }).into()
}
