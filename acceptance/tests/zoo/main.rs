//! Tests that published servers behave the same through Creole as without it, for clients of both eras.
//!
//! Each test starts one server of `acceptance/peers/zoo` or `acceptance/peers/reference` without Creole, behind
//! `creole connect` and behind `creole serve --http`, and compares the results at the clients. The allowed differences
//! are in `acceptance/src/zoo/compare.rs`.
//! A server that cannot be installed is reported on stderr and skipped. With `CI=true` that is a failure.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[cfg(target_os = "linux")]
mod crowd;
mod npm;
mod progress;
mod pypi;
mod reference;

use std::ffi::OsString;

use creole_acceptance::peers::if_installed;
use creole_acceptance::zoo::{
    Folder, Published, Record, ServerRoute, ZooEra, ZooStep, differences, perform,
};

/// Compares the record of a client of each era on each route with the record of a client that starts the server
/// directly.
#[track_caller]
fn same(server: &Published, steps: &[ZooStep]) {
    if command(server, &server.folder().unwrap()).is_none() {
        return;
    }
    let handshake =
        (run_steps(ServerRoute::Direct, server, ZooEra::Handshake, steps), ZooEra::Handshake);
    let stateless = server.has_both_eras.then(|| {
        (run_steps(ServerRoute::Direct, server, ZooEra::Stateless, steps), ZooEra::Stateless)
    });
    let mut found = Vec::new();
    for route in [ServerRoute::Connect, ServerRoute::Serve] {
        for era in [ZooEra::Handshake, ZooEra::Stateless] {
            let direct =
                stateless.as_ref().filter(|_| era == ZooEra::Stateless).unwrap_or(&handshake);
            let through = run_steps(route, server, era, steps);
            let differences = differences((&direct.0, direct.1), (&through, era));
            found.extend(differences.into_iter().map(|text| format!("{route:?}, {era:?}: {text}")));
        }
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found.join("\n"));
}

/// The command that starts a server. If it cannot be installed, this is reported on stderr, and with `CI=true` the test
/// fails.
#[track_caller]
fn command(server: &Published, folder: &Folder) -> Option<Vec<OsString>> {
    if_installed(&format!("{:?}", server.package), server.command(folder))
}

/// Performs one run. A run without Creole must succeed, because the others are compared with it.
#[track_caller]
fn run_steps(route: ServerRoute, server: &Published, era: ZooEra, steps: &[ZooStep]) -> Record {
    let (mut client, _listening) = route.open(server, era).unwrap();
    let record = perform(&mut client, steps);
    let failed = record.iter().find(|entry| entry.seen.get("failed").is_some());
    assert!(route != ServerRoute::Direct || failed.is_none(), "without Creole: {failed:?}");
    record
}
