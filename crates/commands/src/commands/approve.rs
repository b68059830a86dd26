//! `creole approve`: shows and approves changed tools.

use std::io;

use creole_config::{ConfigSource, Plan, open_pin_locations};
use creole_gateway::layers::{ChangedTool, PinLocation};
use tokio::runtime::Builder;

use crate::args::ApproveArgs;
use crate::failure::Failure;
use crate::instance::runtime;
use crate::output;

/// Runs the verb.
pub(crate) fn run(args: &ApproveArgs) -> Result<(), Failure> {
    let plan = Plan::load(ConfigSource::File(&args.file), &creole_config::packs())?;
    let runtime = runtime(&mut Builder::new_current_thread())?;
    runtime.block_on(async {
        let locations = open_pin_locations(&plan).await?;
        if locations.is_empty() {
            return Err(Failure::Refused("this configuration has no `pin` layer".to_owned()));
        }
        match &args.server {
            Some(server) => approve_in(&locations, server, args.tool.as_deref()).await,
            None => show(&locations).await,
        }
    })
}

async fn show(locations: &[PinLocation]) -> Result<(), Failure> {
    let mut lines = Vec::new();
    for location in locations {
        for pin in location.pins().await.map_err(|error| pin_failure(location, &error))? {
            let change = pin.change().map_err(|error| pin_failure(location, &error))?;
            lines.extend(change.iter().flat_map(change_lines));
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

async fn approve_in(
    locations: &[PinLocation],
    server: &str,
    tool: Option<&str>,
) -> Result<(), Failure> {
    let mut approved = Vec::new();
    for location in locations {
        let tools = location.approve(server, tool).await;
        approved.extend(tools.map_err(|error| pin_failure(location, &error))?);
    }
    if approved.is_empty() {
        let message = tool.map_or_else(|| "no tool".to_owned(), |tool| format!("no tool `{tool}`"));
        let help = "`creole approve FILE` shows the withheld tools";
        return Err(Failure::Refused(format!("{message} of `{server}` is withheld; {help}")));
    }
    output::write_data(&format!("approved: {}\n", approved.join(", ")))
}

fn pin_failure(location: &PinLocation, error: &io::Error) -> Failure {
    Failure::Refused(format!("cannot use the pins in {location}: {error}"))
}
