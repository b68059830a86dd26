//! Tools that run a program: without a shell, with one program argument for each word of the template.

mod argv;
mod run;

use std::path::{Path, PathBuf};

use creole::client::{GracePeriods, Program};
use creole::internal::process::Reaper;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::sync::Semaphore;

use super::secret::SecretSource;
use super::template::Template;
use super::tool_result::ResultFormat;

/// The grace periods for ending the program of a finished call.
const GRACE_PERIODS: GracePeriods =
    GracePeriods { after_close: Duration::from_millis(0), after_signal: Duration::from_secs(2) };

/// A tool that runs a program.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandRecipe {
    /// The program: a path, or a name that is looked up when the server starts.
    pub program: PathBuf,
    /// Its arguments.
    pub words: Vec<WordGroup>,
    /// Its standard input.
    pub stdin: Option<Template>,
    /// Additional environment variables.
    pub env: Vec<(String, SecretSource)>,
    /// Environment variables of this process that it inherits.
    pub env_pass: Vec<String>,
    /// Its working directory.
    pub directory: Option<PathBuf>,
    /// The exit codes that mean success.
    pub success_codes: Vec<i32>,
    /// The format of its output.
    pub result: ResultFormat,
    /// Whether its lines on stderr are reported as progress.
    pub progress: bool,
    /// Maximum number of concurrent runs.
    pub max_concurrent: usize,
}

/// Words that are used or omitted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordGroup {
    /// The boolean argument that they depend on.
    pub when: Option<String>,
    /// The words. They are omitted if one of them names an argument that the call does not have.
    pub words: Vec<Template>,
}

/// A program that is ready to run.
pub(super) struct CommandRunner {
    recipe: CommandRecipe,
    program: Program,
    permits: Semaphore,
}

impl CommandRunner {
    /// Looks up the program.
    pub(super) fn new(
        name: &str,
        recipe: &CommandRecipe,
        reaper: Option<Reaper>,
    ) -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let found = find_program(&recipe.program, &folders).ok_or_else(|| {
            let program = recipe.program.display();
            format!("the program `{program}` was not found; install it, or write its full path")
        })?;
        let mut program = Program::new(name, found);
        program.folder = recipe.directory.clone();
        program.reaper = reaper;
        program.grace_periods = GRACE_PERIODS;
        program.log_stderr = false;
        let permits = Semaphore::new(recipe.max_concurrent);
        Ok(Self { recipe: recipe.clone(), program, permits })
    }
}

/// The path of the program: a path unchanged, a name looked up in `PATH`.
fn find_program(program: &Path, folders: &[PathBuf]) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return is_executable(program).then(|| program.to_owned());
    }
    let absolute = folders.iter().filter(|folder| folder.is_absolute());
    absolute.map(|folder| folder.join(program)).find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_and_a_path_is_used() {
        let folders = [PathBuf::from("relative"), PathBuf::from("/nowhere"), PathBuf::from("/bin")];
        assert_eq!(find_program(Path::new("sh"), &folders), Some("/bin/sh".into()));
        assert_eq!(find_program(Path::new("/bin/sh"), &[]), Some("/bin/sh".into()));
        assert_eq!(find_program(Path::new("/etc/passwd"), &folders), None, "nobody may run it");
        assert_eq!(find_program(Path::new("/bin"), &folders), None);
        assert_eq!(find_program(Path::new("no-such-program"), &folders), None);
    }
}
