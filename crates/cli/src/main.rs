//! The `creole` command.
//!
//! The verbs are in `creole-commands`, because the level of optimisation of this crate is also the level of the whole
//! link-time optimisation. What stands here could not be optimised for size.

use std::process::ExitCode;

fn main() -> ExitCode {
    creole_commands::run()
}
