//! Installs the peers of the acceptance tests, unless they are installed already.

use std::process::ExitCode;

use creole_acceptance::peers;

#[expect(clippy::print_stderr, reason = "stderr is the only place for the error")]
fn main() -> ExitCode {
    match peers::install_all() {
        Ok(()) => ExitCode::SUCCESS,
        Err(missing) => {
            eprintln!("{missing}");
            ExitCode::FAILURE
        }
    }
}
