//! The files of this repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository around the current folder.
pub(crate) struct Repository {
    root: PathBuf,
}

/// A text file of the repository.
pub(crate) struct File {
    /// Its path from the root, with `/` between the parts.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

impl Repository {
    /// Finds the root from the current folder.
    pub(crate) fn find() -> Result<Self, String> {
        let path =
            std::env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
        path.ancestors()
            .find(|folder| folder.join("xtask/Cargo.toml").is_file())
            .map(|root| Self { root: root.to_owned() })
            .ok_or_else(|| "no xtask/Cargo.toml above this folder: run it in the repository".into())
    }

    /// The root folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Every text file below a folder of the repository, in the order of their paths, without the output of builds and
    /// installations and without links.
    pub(crate) fn files(&self, below: &str) -> Result<Vec<File>, String> {
        let mut files = Vec::new();
        let mut folders = vec![self.root.join(below)];
        while let Some(folder) = folders.pop() {
            let unreadable = |error| format!("cannot read {}: {error}", folder.display());
            for entry in fs::read_dir(&folder).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let kind = entry.file_type().map_err(unreadable)?;
                let path = self.relative(&entry.path());
                if kind.is_dir() && !is_left_behind(&path) {
                    folders.push(entry.path());
                } else if kind.is_file()
                    && let Some(text) = text_of(&entry.path())?
                {
                    files.push(File { path, text });
                }
            }
        }
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(files)
    }

    fn relative(&self, path: &Path) -> String {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        let parts: Vec<_> = below.iter().map(|part| part.to_string_lossy()).collect();
        parts.join("/")
    }
}

/// The text of a file. `None` if it is not text.
fn text_of(path: &Path) -> Result<Option<String>, String> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        // Another process may change the tree: a missing file is skipped.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", path.display())),
    }
}

/// Whether a build or an installation created this folder.
fn is_left_behind(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    matches!(name, ".git" | "target" | "node_modules" | "__pycache__")
        || matches!(path, "fuzz/corpus" | "fuzz/artifacts")
}
