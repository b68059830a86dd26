//! The client for the official conformance suite: `creole::client` that performs the suite's scenarios.
//!
//! The suite passes the server's URL as the last argument, and in the environment the scenario's name, the revision to
//! use and, for some scenarios, a context.

mod oauth;
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
