//! `creole approve`: shows and approves changed tools.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use creole_config::plan::layer::LayerPlan;
use creole_config::{ConfigSource, Plan};
use creole_gateway::layers::{ChangedTool, approve, changed_tools};

use crate::args::ApproveArgs;
use crate::failure::Failure;
use crate::output;

/// Runs the verb.
pub(crate) fn run(args: &ApproveArgs) -> Result<(), Failure> {
    let plan = Plan::load(ConfigSource::File(&args.file), &creole_config::packs())?;
    let files = files(&plan);
    if files.is_empty() {
        return Err(Failure::Refused("this configuration has no `pin` layer".to_owned()));
    }
    match &args.server {
        Some(server) => approve_in(&files, server, args.tool.as_deref()),
        None => show(&files),
    }
}

/// The files with pinned tools.
fn files(plan: &Plan) -> BTreeSet<PathBuf> {
    let behind = plan.upstreams.iter().flat_map(|upstream| &upstream.chain);
    let layers = plan.server.chain.iter().chain(behind);
    layers
        .filter_map(|layer| match layer {
            LayerPlan::Pin(file) => Some(file.clone()),
            _ => None,
        })
        .collect()
}

fn show(files: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for file in files {
        for changed in changed_tools(file).map_err(|error| file_failure(file, &error))? {
            lines.extend(change_lines(&changed));
        }
    }
    if lines.is_empty() {
        lines.push("No tool changed.".to_owned());
    }
    output::write_data(&format!("{}\n", lines.join("\n")))
}

/// The differences, with each value as JSON: its escapes prevent terminal control sequences.
fn change_lines(changed: &ChangedTool) -> Vec<String> {
    let mut lines = vec![format!("{:?} {:?}", changed.server, changed.tool)];
    for (location, before, after) in changed.differences() {
        lines.push(format!("  {location:?}"));
        lines.extend(before.map(|value| format!("    - {}", escape_invisible(&value.to_string()))));
        lines.extend(after.map(|value| format!("    + {}", escape_invisible(&value.to_string()))));
    }
    lines
}

/// The text with invisible characters escaped.
fn escape_invisible(text: &str) -> String {
    let shown = |character: char| match character.is_ascii_graphic()
        || character == ' '
        || character.is_alphanumeric()
    {
        true => character.to_string(),
        false => character.escape_unicode().to_string(),
    };
    text.chars().map(shown).collect()
}

fn approve_in(files: &BTreeSet<PathBuf>, server: &str, tool: Option<&str>) -> Result<(), Failure> {
    let mut approved = Vec::new();
    for file in files {
        approved.extend(approve(file, server, tool).map_err(|error| file_failure(file, &error))?);
    }
    if approved.is_empty() {
        let message = tool.map_or_else(|| "no tool".to_owned(), |tool| format!("no tool `{tool}`"));
        let help = "`creole approve FILE` shows the withheld tools";
        return Err(Failure::Refused(format!("{message} of `{server}` is withheld; {help}")));
    }
    output::write_data(&format!("approved: {}\n", approved.join(", ")))
}

fn file_failure(file: &Path, error: &io::Error) -> Failure {
    Failure::Refused(format!("cannot use the pin file `{}`: {error}", file.display()))
}
