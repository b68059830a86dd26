//! `creole init`: writes a first configuration.

mod answers;
pub(crate) mod shell_words;
mod text;

use std::path::Path;

use creole_config::describe::schema::schema;

use crate::args::InitArgs;
use crate::commands::setup::init::answers::InitAnswers;
use crate::commands::setup::{files, terminal_prompt};
use crate::failure::Failure;
use crate::output;

/// The schema file beside the configuration. Editors use it for completion and checks.
const SCHEMA: &str = "creole.schema.json";

/// Runs the verb.
pub(crate) fn run(args: &InitArgs) -> Result<(), Failure> {
    let file = &args.file;
    let is_stdout = file.as_os_str() == "-";
    if !is_stdout && file.exists() {
        return Err(Failure::Usage(format!(
            "`{}` already exists and is not overwritten; choose another file, or use `creole \
                add` to add a server to it",
            file.display()
        )));
    }
    let mut answers = InitAnswers::from_args(args)?;
    if terminal_prompt::is_terminal() && answers.is_empty() {
        answers.ask(file)?;
    }
    let text = text::configuration(&answers);
    if is_stdout {
        return output::write_data(&text);
    }
    files::create(file, &text)?;
    let shown = file.display();
    output::write_message(&format!("creole: wrote {shown}"));
    write_schema(file)?;
    output::write_message(&format!(
        "creole: `creole config check {shown}` checks it and shows what it means"
    ));
    output::write_message(&format!(
        "creole: `creole serve {shown}` serves it; `creole install` adds it to a client"
    ));
    Ok(())
}

/// Writes the schema beside the configuration, unless it exists.
fn write_schema(file: &Path) -> Result<(), Failure> {
    let path = file.with_file_name(SCHEMA);
    if path.exists() {
        return Ok(());
    }
    files::create(&path, &format!("{:#}\n", schema(&creole_config::packs())))?;
    output::write_message(&format!(
        "creole: wrote {}, the schema for completion and checks in editors",
        path.display()
    ));
    Ok(())
}
