//! The folder of one run, which a server may read and write.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, process};

use serde_json::Value;
use tempfile::TempDir;

/// Stands for the folder's path in arguments and in records.
const PLACEHOLDER: &str = "{folder}";

/// The dates and the author of the one commit, so that its hash is the same each time.
const COMMIT: [(&str, &str); 8] = [
    ("GIT_AUTHOR_NAME", "Zoo"),
    ("GIT_AUTHOR_EMAIL", "zoo@example.com"),
    ("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z"),
    ("GIT_COMMITTER_NAME", "Zoo"),
    ("GIT_COMMITTER_EMAIL", "zoo@example.com"),
    ("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
];

/// A new folder with the same files each time. It is removed when dropped.
#[derive(Debug)]
pub struct Folder {
    _kept: TempDir,
    path: PathBuf,
}

impl Folder {
    /// Creates one with a few notes: `first.md`, `second.md` and `below/third.md`.
    pub fn new() -> Result<Self, String> {
        // No capital letters: some servers convert paths to lower case.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("zoo-{}-{}", process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let directory = tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir();
        let directory = directory.map_err(|error| error.to_string())?;
        let path = directory.path().canonicalize().map_err(|error| error.to_string())?;
        let folder = Self { _kept: directory, path };
        folder.write("first.md", "# First\n\nNothing leaves this folder.\n")?;
        folder.write("second.md", "# Second\n\nGr\u{fc}\u{df}e, \u{4e16}\u{754c}.\n")?;
        folder.write("below/third.md", "# Third\n")?;
        Ok(folder)
    }

    /// Makes the notes a git repository with one commit.
    pub fn commit(&self) -> Result<(), String> {
        for words in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-qm", "Notes"]]
        {
            let mut git = Command::new("git");
            git.args(words).envs(COMMIT).current_dir(&self.path);
            let status = git.status().map_err(|error| format!("git is needed: {error}"))?;
            if !status.success() {
                return Err(format!("git {words:?}: {status}"));
            }
        }
        Ok(())
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A text with the folder's path in place of `{folder}`.
    #[must_use]
    pub fn fill(&self, text: &str) -> String {
        text.replace(PLACEHOLDER, &self.path.display().to_string())
    }

    /// The same for every string of a value.
    #[must_use]
    pub fn fill_in(&self, value: &Value) -> Value {
        replaced(value, PLACEHOLDER, &self.path.display().to_string())
    }

    /// A value with `{folder}` in place of the folder's path, which differs between runs.
    #[must_use]
    pub fn hide(&self, value: &Value) -> Value {
        replaced(value, &self.path.display().to_string(), PLACEHOLDER)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), String> {
        let path = self.path.join(name);
        let parent = path.parent().unwrap_or(&self.path);
        let result = fs::create_dir_all(parent).and_then(|()| fs::write(&path, text));
        result.map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// A value with one text replaced by another in all its strings.
fn replaced(value: &Value, from: &str, to: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(from, to)),
        Value::Array(items) => items.iter().map(|item| replaced(item, from, to)).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(name, value)| (name.clone(), replaced(value, from, to))).collect(),
        ),
        _ => value.clone(),
    }
}
