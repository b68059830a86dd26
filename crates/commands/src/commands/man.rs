//! `creole man` and `creole completions`: the manual with one page per verb, and the completion script of a shell.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::output;

/// Runs the verb.
pub(crate) fn run(args: &ManArgs) -> Result<(), Failure> {
    let mut command = Args::command();
    command.build();
    match &args.folder {
        None => output::write_bytes(&page(&command)?),
        Some(folder) => {
            let written = write(&command, folder)?;
            output::write_message(&format!(
                "creole: wrote {written} pages into {}",
                folder.display()
            ));
            Ok(())
        }
    }
}

/// Prints the completion script.
pub(super) fn print_completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "creole", &mut script);
    output::write_bytes(&script)
}

/// Writes the pages of a command and its subcommands. Returns their number.
fn write(command: &Command, folder: &Path) -> Result<usize, Failure> {
    let unwritable =
        |path: &Path, error| Failure::Call(format!("cannot write `{}`: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let mut count = 0;
    let mut rest = vec![command];
    while let Some(command) = rest.pop() {
        let file = folder.join(format!("{}.1", name(command)));
        fs::write(&file, page(command)?).map_err(|error| unwritable(&file, error))?;
        count += 1;
        let is_shown = |command: &&Command| !command.is_hide_set() && command.get_name() != "help";
        rest.extend(command.get_subcommands().filter(is_shown));
    }
    Ok(count)
}

/// The name of a page: `creole-config-check`.
fn name(command: &Command) -> String {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    name.replace(' ', "-")
}

fn page(command: &Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let result = Man::new(command.clone()).title(name(command)).render(&mut page);
    result.map_err(|error| Failure::Call(format!("cannot render the manual: {error}")))?;
    Ok(page)
}
