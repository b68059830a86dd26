//! The verbs of the `creole` command, with their arguments and their output.

mod args;
mod commands;
mod failure;
mod http_target;
mod instance;
mod log;
mod login;
mod output;
mod schema_property;
mod session;
mod target;
mod tool_arguments;
mod upstreams;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::args::Args;

/// How long the end of the process waits for the last lines of audit logs.
const AUDIT_FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// Parses the command line, runs one verb, and returns the exit code.
///
/// 0: success. 1: the call failed. 2: the command line or the configuration is invalid.
pub fn run() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(notice) => return output::write_usage(&notice),
    };
    let result = commands::run(&args.command);
    creole_gateway::audit::flush(AUDIT_FLUSH_TIMEOUT);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::write_failure(&failure);
            failure.exit_code()
        }
    }
}
