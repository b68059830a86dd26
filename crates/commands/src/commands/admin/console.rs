//! `creole console`: prints a link that signs in to the console once.

use super::{UNIX_PREFIX, only_link};
use crate::args::ConsoleArgs;
use crate::failure::Failure;
use crate::output;

/// What to do about a process that is not found.
const HOW_TO_OPEN: &str = "if it has users, open its address in a browser and sign in";

/// Runs the verb.
pub(crate) fn run(args: &ConsoleArgs) -> Result<(), Failure> {
    let link = only_link(args.url.as_deref(), HOW_TO_OPEN)?;
    if link.url.starts_with(UNIX_PREFIX) {
        let message = format!(
            "a browser cannot open {}; forward it to a port, or use `creole top`",
            link.url
        );
        return Err(Failure::Refused(message));
    }
    output::write_data(&format!("{}\n", link.page()))
}
