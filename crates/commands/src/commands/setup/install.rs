//! `creole install`: adds Creole to the configuration of a client, after it has shown the change.

mod client;
mod edit;

use std::path::{Path, PathBuf, absolute};

use crate::args::InstallArgs;
use crate::commands::setup::install::client::{ClientApp, HomeFolders};
use crate::commands::setup::{files, terminal_prompt};
use crate::failure::Failure;
use crate::output;
use crate::output::layout::Layout;

/// The command that a client starts.
#[derive(Debug)]
struct ClientEntry {
    command: String,
    args: Vec<String>,
}

/// Runs the verb.
pub(crate) fn run(args: &InstallArgs) -> Result<(), Failure> {
    let client = ClientApp::by_name(args.client);
    let file = client_file(args, &client)?;
    let entry = entry(args.config.as_deref())?;
    let before = files::read(&file)?;
    let text = before.as_deref().unwrap_or_default();
    let after = edit::with_entry(text, client.keys, &args.name, &client.members(&entry))
        .map_err(|reason| Failure::Usage(format!("`{}` {reason}", file.display())))?;
    let shown = file.display();
    if after == text {
        output::write_message(&format!(
            "creole: {shown} already has the correct entry `{}`",
            args.name
        ));
        return Ok(());
    }
    output::write_data(&diff(&file, text, &after))?;
    if args.dry_run || !may_write(args)? {
        output::write_message("creole: nothing was written");
        return Ok(());
    }
    if before.is_some() {
        let copy = files::keep_copy(&file)?;
        output::write_message(&format!(
            "creole: the previous version of the file is in {}",
            copy.display()
        ));
    }
    files::replace(&file, &after)?;
    output::write_message(&format!("creole: wrote {shown}; {}", client.hint));
    Ok(())
}

fn may_write(args: &InstallArgs) -> Result<bool, Failure> {
    if args.yes {
        return Ok(true);
    }
    if !terminal_prompt::is_terminal() {
        return Err(Failure::Usage(
            "there is no terminal for the confirmation; --yes writes the change, --dry-run only \
                shows it"
                .to_owned(),
        ));
    }
    terminal_prompt::confirm("Write this?")
}

/// The file of the client to change.
fn client_file(args: &InstallArgs, client: &ClientApp) -> Result<PathBuf, Failure> {
    match (&args.file, args.project) {
        (Some(file), _) => Ok(file.clone()),
        (None, true) => client.project_file().ok_or_else(|| {
            Failure::Usage(format!(
                "{} has no project configuration; remove --project",
                client.title
            ))
        }),
        (None, false) => client.user_file(&HomeFolders::of_environment()).ok_or_else(|| {
            let description =
                "the home folder is unknown; set HOME, or give the client's file with --file";
            Failure::Usage(description.to_owned())
        }),
    }
}

/// The command of this program with absolute paths: clients start it with their own working directory and search path.
fn entry(config: Option<&Path>) -> Result<ClientEntry, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::Call(format!("cannot determine the path of the creole executable: {error}"))
    })?;
    let mut args = vec!["serve".to_owned(), "--stdio".to_owned()];
    if let Some(file) = config {
        let refused = |reason: String| Failure::Usage(format!("`{}` {reason}", file.display()));
        let whole = absolute(file).map_err(|error| refused(format!("cannot be found: {error}")))?;
        if !whole.is_file() {
            return Err(refused("does not exist; `creole init` writes one".to_owned()));
        }
        args.push(text(&whole)?);
    }
    Ok(ClientEntry { command: text(&program)?, args })
}

fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::Usage(format!("the path {path:?} is not UTF-8 text")))
}

/// The lines that differ. The lines around them may contain secrets of other servers and are not shown.
fn diff(file: &Path, before: &str, after: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
    let layout = Layout::of_stdout();
    let mut text = format!("{}:{}\n", file.display(), same + 1);
    for line in old {
        text.push_str(&layout.bad(&output::printable(&format!("- {line}"))));
        text.push('\n');
    }
    for line in new {
        text.push_str(&layout.good(&output::printable(&format!("+ {line}"))));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_lines_that_differ_are_shown() {
        let (before, after) = ("{\n  secret\n  a\n}\n", "{\n  secret\n  a,\n  b\n}\n");
        let expected = "f.json:3\n-   a\n+   a,\n+   b\n";
        assert_eq!(diff(Path::new("f.json"), before, after), expected);
    }
}
