//! Tools that run a program: no shell, one argument of the program for each word of the template.

mod argv;
mod run;

use std::path::{Path, PathBuf};

use creole::process::{GracePeriods, Program, Reaper};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::sync::Semaphore;

use super::secret::SecretSource;
use super::template::Template;
use super::tool_result::ResultFormat;

/// How patiently a program is ended whose call is over.
const GRACE_PERIODS: GracePeriods =
    GracePeriods { after_close: Duration::from_millis(0), after_signal: Duration::from_secs(2) };

/// A tool that runs a program.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandRecipe {
    /// The program: a path, or a name that is looked up once, when the server starts.
    pub program: PathBuf,
    /// Its arguments.
    pub words: Vec<WordGroup>,
    /// What it reads.
    pub stdin: Option<Template>,
    /// Variables that it is given.
    pub env: Vec<(String, SecretSource)>,
    /// Variables of this process that it is given too.
    pub env_pass: Vec<String>,
    /// The folder that it runs in.
    pub directory: Option<PathBuf>,
    /// The exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// What it writes.
    pub result: ResultFormat,
    /// Whether its lines on stderr are told as progress.
    pub progress: bool,
    /// How many of it may run at the same time.
    pub max_concurrent: usize,
}

/// Words that belong together: all of them are there, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordGroup {
    /// The yes-or-no argument that they depend on.
    pub when: Option<String>,
    /// The words. They are left out where one of them names an argument that a call does not have.
    pub words: Vec<Template>,
}

/// A program that is ready to be run.
pub(super) struct CommandRunner {
    recipe: CommandRecipe,
    program: Program,
    permits: Semaphore,
}

impl CommandRunner {
    /// Looks the program up.
    pub(super) fn new(
        name: &str,
        recipe: &CommandRecipe,
        guardian: Option<Reaper>,
    ) -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let found = find_program(&recipe.program, &folders).ok_or_else(|| {
            let program = recipe.program.display();
            format!("there is no program `{program}`; install it, or write its whole path")
        })?;
        let program = Program {
            folder: recipe.directory.clone(),
            reaper: guardian,
            grace_periods: GRACE_PERIODS,
            log_stderr: false,
            ..Program::new(name, found)
        };
        let places = Semaphore::new(recipe.max_concurrent);
        Ok(Self { recipe: recipe.clone(), program, permits: places })
    }
}

/// The program itself: a path as it is, a name as `PATH` has it.
fn find_program(program: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_executable(program).then(|| program.to_owned());
    }
    let absolute = folders.iter().filter(|folder| folder.is_absolute());
    absolute.map(|folder| folder.join(program)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests;
