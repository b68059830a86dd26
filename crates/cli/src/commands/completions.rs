//! `creole completions`: prints the completion script of a shell.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::failure::Failure;
use crate::output;

/// Runs the verb.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "creole", &mut script);
    output::write_bytes(&script)
}
