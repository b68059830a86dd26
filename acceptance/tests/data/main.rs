//! Tests of databases and scripts with the binary: SQLite files, a PostgreSQL server started by the tests, and
//! JavaScript.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod encrypted;
mod examples;
mod queries;
mod scripts;
mod tasks;

use std::fs;
use std::path::Path;

use creole_acceptance::peers::if_installed;
use creole_acceptance::peers::postgres::Postgres;
use creole_acceptance::process_under_test::{Server, serve, told};

/// A PostgreSQL server. Returns `None` if it cannot be installed, which is reported on stderr and is a failure with
/// `CI=true`.
fn postgres() -> Option<Postgres> {
    if_installed("PostgreSQL", Postgres::start())
}

/// Starts a server with this configuration in a folder.
fn start(folder: &Path, configuration: &str) -> Server {
    start_with(folder, configuration, &[])
}

fn start_with(folder: &Path, configuration: &str, variables: &[(&str, &str)]) -> Server {
    fs::write(folder.join("creole.toml"), configuration).unwrap();
    let mut command = serve(folder, &["creole.toml"]);
    command.envs(variables.iter().copied());
    Server::start_command(command).greeted()
}
