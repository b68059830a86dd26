//! A folder of Markdown files as prompts: one file is one prompt.
//!
//! A file begins with front matter that says what the prompt is called and takes; the rest is its text, with gaps for
//! the arguments. Lines `# user` and `# assistant` begin a message each; without them the text is one message of the
//! user. Changes show at once; a file that became wrong stays as it last was right, and the log says what is wrong.

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
    /// The name that the configuration knows it by.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// What the names of its prompts begin with.
    pub prefix: String,
    /// Whether changes are noticed.
    pub watch: bool,
}

impl PromptsRecipe {
    /// A folder of prompts that have the names of their files.
    pub fn new(name: &str, path: impl Into<PathBuf>) -> Self {
        Self { name: name.to_owned(), path: path.into(), prefix: String::new(), watch: true }
    }

    /// Adds the prompts to a server. One that is wrong is left out, and the log says why.
    pub(super) fn add(&self, server: Server) -> Result<Server, RecipeError> {
        let mut served = PromptFolder::new(self);
        let problems = served.load().map_err(|problem| self.unreadable(&problem))?;
        for problem in problems {
            tracing::error!("a prompt is left out: {problem}");
        }
        Ok(server.setup(move |registry| served.start(registry)))
    }

    /// What is wrong with the folder and its files.
    pub(super) fn file_errors(&self) -> Vec<FileError> {
        PromptFolder::new(self).load().unwrap_or_else(|problem| vec![problem])
    }

    fn unreadable(&self, problem: &FileError) -> RecipeError {
        RecipeError { name: self.name.clone(), message: problem.to_string() }
    }
}

/// The name of a prompt, if a file is one.
fn stem(path: &Path) -> Option<&str> {
    let is_markdown = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
    path.file_stem().filter(|_| is_markdown)?.to_str()
}

#[cfg(test)]
mod tests;
