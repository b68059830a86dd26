//! The client that the official conformance suite judges: `creole::client`, made to do what a scenario wants.
//!
//! The suite hands over the server's URL as the last argument, and in the environment the scenario's name, the
//! revision to speak and, for some scenarios, a context.

mod scenario;
mod skills;

use std::env;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stderr, reason = "the suite shows it when a scenario fails")]
async fn main() -> ExitCode {
    let Some(url) = env::args().next_back() else { return ExitCode::FAILURE };
    match scenario::perform(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
