//! `creole init`: a first configuration, of what a person has.

mod answers;
mod text;

use std::path::Path;

use creole_gateway::config::schema::schema;

use self::answers::Answers;
use crate::args::InitArgs;
use crate::failure::Failure;
use crate::{asking, files, output};

/// The file of the schema, beside the configuration: editors complete and check by it.
const SCHEMA: &str = "creole.schema.json";

/// Runs the verb.
pub(crate) fn run(args: &InitArgs) -> Result<(), Failure> {
    let file = &args.file;
    let is_stdout = file.as_os_str() == "-";
    if !is_stdout && file.exists() {
        return Err(Failure::Usage(format!(
            "`{}` is there already and is not overwritten: name another file; `creole add` adds a server to it",
            file.display()
        )));
    }
    let mut answers = Answers::given(args)?;
    if asking::is_possible() && answers.is_empty() {
        answers.ask(file)?;
    }
    let text = text::configuration(&answers);
    if is_stdout {
        return output::data(&text);
    }
    files::create(file, &text)?;
    let shown = file.display();
    output::talk(&format!("creole: wrote {shown}"));
    write_schema(file)?;
    output::talk(&format!("creole: `creole config check {shown}` says what it means"));
    output::talk(&format!(
        "creole: `creole serve {shown}` serves it, `creole install --help` shows it to clients"
    ));
    Ok(())
}

/// Writes the schema beside the configuration, unless there is one.
fn write_schema(file: &Path) -> Result<(), Failure> {
    let place = file.with_file_name(SCHEMA);
    if place.exists() {
        return Ok(());
    }
    files::create(&place, &format!("{:#}\n", schema(&creole_cli::packs())))?;
    output::talk(&format!(
        "creole: wrote {}, by which editors complete and check it",
        place.display()
    ));
    Ok(())
}
