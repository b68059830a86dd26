//! The `creole` command: parses the command line, runs one verb, and ends with its exit code.
//!
//! 0: success. 1: the call failed. 2: the command line or the configuration is invalid.

mod args;
mod commands;
mod failure;
mod log;
mod output;
mod schema_property;
mod session;
mod target;
mod tool_arguments;
mod upstreams;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(notice) => return output::write_usage(&notice),
    };
    match commands::run(&args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::write_failure(&failure);
            failure.exit_code()
        }
    }
}
