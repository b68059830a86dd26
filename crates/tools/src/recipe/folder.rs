//! A folder as resources: its files are listed, read, completed and watched.
//!
//! The URIs are `folder://NAME/path`, so that no path of the machine is disclosed. Only files that the folder's filter
//! selects can be read, for every caller and every spelling of the URI.

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
    /// The name at the start of its URIs: letters, digits, `-` and `_`.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// The display name.
    pub title: Option<String>,
    /// Its description.
    pub about: Option<String>,
    /// The visible files; all if there is no pattern.
    pub include: Vec<Pattern>,
    /// The excluded files and folders.
    pub exclude: Vec<Pattern>,
    /// Whether names that begin with a dot are visible.
    pub hidden: bool,
    /// Whether files with several hard links are visible. The other name may be outside of the folder.
    pub hard_links: bool,
    /// Maximum depth of nested folders.
    pub max_depth: usize,
    /// Maximum number of listed files; others can still be read.
    pub max_files: usize,
    /// Maximum size of a readable file, in bytes.
    pub max_file_bytes: u64,
    /// Whether the folder is watched for changes.
    pub watch: bool,
}

impl FolderRecipe {
    /// A folder with the default limits.
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

    /// Adds the folder to a server. It is scanned now, so that errors are reported at startup.
    pub(super) fn add(&self, server: Server) -> Result<Server, RecipeError> {
        let served = FolderService::new(self);
        let first = served.scan().map_err(|error| self.unreadable(&error))?;
        Ok(server.setup(move |registry| served.start(first, registry)))
    }

    fn unreadable(&self, error: &io::Error) -> RecipeError {
        let message = format!("cannot read the folder `{}`: {error}", self.path.display());
        RecipeError { name: self.name.clone(), message }
    }
}

#[cfg(test)]
mod tests;
