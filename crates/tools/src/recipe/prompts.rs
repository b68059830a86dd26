//! A folder of Markdown files as prompts: one prompt per file.
//!
//! A file begins with front matter that names the prompt and its arguments. The rest is a text template. Lines `# user`
//! and `# assistant` begin a message each; without them the text is one message of the user. Changes take effect at
//! once. A file that becomes invalid keeps its last valid version, and its error is logged.

mod messages;
mod prompt_file;
mod prompt_folder;
mod prompt_front_matter;

use std::path::{Path, PathBuf};

use creole::Server;

use self::prompt_folder::PromptFolder;
use super::RecipeError;
use crate::files::FileError;

/// A folder of Markdown files, each of which is a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptsRecipe {
    /// Its name in the configuration.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// The prefix of the prompts' names.
    pub prefix: String,
    /// Whether the folder is watched for changes.
    pub watch: bool,
}

impl PromptsRecipe {
    /// A folder of prompts named after their files.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self { name: name.to_owned(), path: path.into(), prefix: String::new(), watch: true }
    }

    /// Adds the prompts to a server. An invalid one is omitted and logged.
    pub(super) fn add(&self, server: Server) -> Result<Server, RecipeError> {
        let mut served = PromptFolder::new(self);
        let problems = served.load().map_err(|problem| self.unreadable(&problem))?;
        for problem in problems {
            tracing::error!("prompt excluded: {problem}");
        }
        Ok(server.setup(move |registry| served.start(registry)))
    }

    /// The errors in the folder and its files.
    pub(super) fn file_errors(&self) -> Vec<FileError> {
        PromptFolder::new(self).load().unwrap_or_else(|problem| vec![problem])
    }

    fn unreadable(&self, problem: &FileError) -> RecipeError {
        RecipeError { name: self.name.clone(), message: problem.to_string() }
    }
}

/// The name of a prompt, if the file is one.
fn stem(path: &Path) -> Option<&str> {
    let is_markdown = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
    path.file_stem().filter(|_| is_markdown)?.to_str()
}

#[cfg(test)]
mod tests;
