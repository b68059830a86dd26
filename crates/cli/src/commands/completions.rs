//! `creole completions`: what a shell needs to complete command lines.

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
