//! The `creole` command: reads the command line, runs one verb, and ends with its exit code.
//!
//! 0: done. 1: the call failed. 2: the command line or the configuration is wrong.

mod args;
mod arguments;
mod asking;
mod commands;
mod events;
mod failure;
mod files;
mod guardian;
mod help;
mod hints;
mod jsonc;
mod layout;
mod log;
mod output;
mod progress;
mod property;
mod questions;
mod render;
mod session;
mod target;
mod upstreams;
mod words;

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
            output::failure(&failure);
            failure.exit_code()
        }
    }
}
