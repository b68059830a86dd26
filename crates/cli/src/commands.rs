//! One verb per file.

mod approve;
mod config;
mod connect;
mod passwd;
mod serve;

use crate::args::Command;
use crate::failure::Failure;

/// Runs the verb.
pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(args),
        Command::Connect(args) => connect::run(args),
        Command::Config(command) => config::run(command),
        Command::Passwd(args) => passwd::run(args),
        Command::Guard => {
            crate::guardian::run();
            Ok(())
        }
        Command::Approve(args) => approve::run(args),
    }
}
