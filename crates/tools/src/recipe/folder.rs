//! A folder as resources: its files are listed, read, completed and watched.
//!
//! Their uris are `folder://NAME/path`, so that no path of the machine is told. Only what the folder's rules show can
//! be read, whoever asks for it and however it is written.

mod folder_service;
mod uri;

use std::io;
use std::path::PathBuf;

use creole::Server;

use self::folder_service::FolderService;
use super::RecipeError;
use crate::files::Pattern;

/// A folder whose files are resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderRecipe {
    /// The name that its uris begin with: letters, digits, `-` and `_`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// A name for people.
    pub title: Option<String>,
    /// What is in it.
    pub about: Option<String>,
    /// Which files are shown; all if there is no pattern.
    pub include: Vec<Pattern>,
    /// Which files and folders are not.
    pub exclude: Vec<Pattern>,
    /// Whether names that begin with a dot are shown.
    pub hidden: bool,
    /// Whether files are shown that have another name as well, which may be outside of the folder.
    pub hard_links: bool,
    /// How many folders may be inside of one another.
    pub max_depth: usize,
    /// How many files are listed; others can still be read.
    pub max_files: usize,
    /// How many bytes a file may have to be read.
    pub max_file_bytes: u64,
    /// Whether changes are noticed.
    pub watch: bool,
}

impl FolderRecipe {
    /// A folder with the usual limits.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.to_owned(),
            path: path.into(),
            title: None,
            about: None,
            include: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            hard_links: false,
            max_depth: 16,
            max_files: 10_000,
            max_file_bytes: 8 * 1024 * 1024,
            watch: true,
        }
    }

    /// Adds the folder to a server. Its names are read now, so that what is wrong is told at the start.
    pub(super) fn add(&self, server: Server) -> Result<Server, RecipeError> {
        let served = FolderService::new(self);
        let first = served.scan().map_err(|error| self.unreadable(&error))?;
        Ok(server.setup(move |registry| served.start(first, registry)))
    }

    fn unreadable(&self, error: &io::Error) -> RecipeError {
        let what = format!("the folder `{}` cannot be read: {error}", self.path.display());
        RecipeError { name: self.name.clone(), message: what }
    }
}

#[cfg(test)]
mod tests;
