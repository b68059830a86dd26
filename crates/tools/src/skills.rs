//! The pack `skills`: a folder of skills, each a folder with a `SKILL.md`.
//!
//! The folder is read once, when the server starts. Errors are reported then, and the digests in a skill's entry match
//! the bytes that are read later. A change on disk takes effect after a restart.

mod folder;

use std::path::Path;

use creole::internal::skill::MANIFEST;
use creole::{Server, Skill, SkillError};

pub use crate::files::FileError;
use folder::{FolderContents, SkillFolder};

/// The skills in a folder.
#[derive(Debug)]
pub struct LoadedSkills {
    /// The valid skills, sorted by path.
    pub skills: Vec<Skill>,
    /// The errors in the others.
    pub errors: Vec<FileError>,
}

/// Adds the pack. An invalid skill is omitted and logged; the others are served.
pub(crate) fn add(mut server: Server, folder: &Path) -> Result<Server, FileError> {
    let loaded = load(folder)?;
    for problem in loaded.errors {
        tracing::error!("skill excluded: {problem}");
    }
    for skill in loaded.skills {
        server = server.skill(skill);
    }
    Ok(server)
}

/// Reads a folder of skills.
///
/// Names that begin with a dot are skipped. Links are followed if they stay inside the folder, and only folders and
/// files are opened.
///
/// # Errors
/// When the folder is unreadable, or exceeds the limits of one server.
pub fn load(folder: &Path) -> Result<LoadedSkills, FileError> {
    let FolderContents { files, skills: locations, unreadable: unread } =
        SkillFolder::open(folder)?.read()?;
    let (mut skills, mut problems) = (Vec::new(), Vec::new());
    for location in &locations {
        let inside = format!("{location}/");
        // A skill without one of its files is incomplete. The error of the file is already reported.
        if unread.iter().any(|(path, _)| path.starts_with(&inside)) {
            continue;
        }
        let own = files.range(inside.clone()..).take_while(|(path, _)| path.starts_with(&inside));
        let own = own.map(|(path, bytes)| (&path[inside.len()..], bytes.clone()));
        match Skill::new(location, own) {
            Ok(skill) => skills.push(skill),
            Err(error) => problems.push(skill_error(folder, location, error)),
        }
    }
    problems.extend(unread.into_iter().map(|(_, problem)| problem));
    if locations.is_empty() && problems.is_empty() {
        let problem = FileError::new(folder, "the folder contains no skill");
        problems.push(problem.help(format!("a skill is a folder with a `{MANIFEST}`")));
    }
    Ok(LoadedSkills { skills, errors: problems })
}

fn skill_error(folder: &Path, location: &str, error: SkillError) -> FileError {
    let skill = folder.join(location);
    let file = error.file.map_or_else(|| skill.clone(), |file| skill.join(file));
    FileError { file, line: error.line, column: None, message: error.message, help: error.help }
}

#[cfg(test)]
mod tests;
