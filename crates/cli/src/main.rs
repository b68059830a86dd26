//! The `creole` command: reads the command line, runs one verb, and ends with its exit code.
//!
//! 0: done. 1: the call failed. 2: the command line or the configuration is wrong.

mod args;
mod arguments;
mod commands;
mod events;
mod failure;
mod guardian;
mod log;
mod output;
mod property;
mod questions;
mod render;
mod session;
mod target;
mod upstreams;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(notice) => return output::usage(&notice),
    };
    match commands::run(&args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::talk(&failure.to_string());
            failure.exit_code()
        }
    }
}
