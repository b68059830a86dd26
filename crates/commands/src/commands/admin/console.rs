//! `creole console`: prints a link that signs in to the console once.

use super::only_link;
use crate::args::ConsoleArgs;
use crate::failure::Failure;
use crate::output;

/// Runs the verb.
pub(crate) fn run(args: &ConsoleArgs) -> Result<(), Failure> {
    let link = only_link(&args.admin)?;
    if link.url.starts_with("unix:") {
        let message = format!(
            "a browser cannot open {}; forward it to a port, or use `creole top`",
            link.url
        );
        return Err(Failure::Refused(message));
    }
    output::write_data(&format!("{}\n", link.page()))
}
