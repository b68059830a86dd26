//! The pack `skills`: a folder of skills, each a folder with a `SKILL.md`.
//!
//! The folder is read once, when the server starts: what is wrong is told then, and what a skill tells of its files
//! and what is read later are the same bytes. A change on the disk shows when the server starts again.

mod folder;

use std::path::Path;

use creole::skill::{MANIFEST, Skill};
use creole::{Server, SkillError};

pub use crate::files::FileError;
use folder::{FolderContents, SkillFolder};

/// What a folder of skills holds.
#[derive(Debug)]
pub struct LoadedSkills {
    /// The skills that can be served, by their paths.
    pub skills: Vec<Skill>,
    /// What is wrong with the others.
    pub errors: Vec<FileError>,
}

/// Adds the pack. A skill that is wrong is left out, and the log says why; the others are served.
pub(crate) fn add(mut server: Server, folder: &Path) -> Result<Server, FileError> {
    let loaded = load(folder)?;
    for problem in loaded.errors {
        tracing::error!("a skill is left out: {problem}");
    }
    for skill in loaded.skills {
        server = server.skill(skill);
    }
    Ok(server)
}

/// Reads a folder of skills.
///
/// Names that begin with a dot are passed over. Links are followed as long as they stay inside of the folder, and
/// nothing is opened but folders and files.
///
/// # Errors
/// When the folder cannot be read at all, or holds more than one server should.
pub fn load(folder: &Path) -> Result<LoadedSkills, FileError> {
    let FolderContents { files, skills: places, unreadable: unread } =
        SkillFolder::open(folder)?.read()?;
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    for place in &places {
        let inside = format!("{place}/");
        // Without one of its files a skill is not whole; what is wrong with the file is told already.
        if unread.iter().any(|(path, _)| path.starts_with(&inside)) {
            continue;
        }
        let own = files.range(inside.clone()..).take_while(|(path, _)| path.starts_with(&inside));
        let own = own.map(|(path, bytes)| (&path[inside.len()..], bytes.clone()));
        match Skill::new(place, own) {
            Ok(skill) => skills.push(skill),
            Err(error) => problems.push(skill_error(folder, place, error)),
        }
    }
    problems.extend(unread.into_iter().map(|(_, problem)| problem));
    if places.is_empty() && problems.is_empty() {
        let problem = FileError::new(folder, "there is no skill in this folder");
        problems.push(problem.help(format!("a skill is a folder with a `{MANIFEST}`")));
    }
    Ok(LoadedSkills { skills, errors: problems })
}

fn skill_error(folder: &Path, place: &str, error: SkillError) -> FileError {
    let skill = folder.join(place);
    let file = error.file.map_or_else(|| skill.clone(), |file| skill.join(file));
    FileError { file, line: error.line, column: None, message: error.message, help: error.help }
}

#[cfg(test)]
mod tests;
