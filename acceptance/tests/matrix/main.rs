//! Tests every client through Creole with every server, and checks the table of results: `docs/matrix.md`.
//!
//! The clients and servers are third-party SDKs, including older releases. The results must be at least as good as the
//! table. `CREOLE_WRITE_MATRIX=1 cargo test -p creole-acceptance --test matrix -- --test-threads=1` rewrites the table.
//! An SDK that cannot be installed is reported on stderr and skipped. With `CI=true` that is a failure.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stderr, reason = "failed runs are reported on stderr")]

mod client;
mod feature_tools;
mod route;
mod run_result;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Mutex;
use std::thread;

use creole_acceptance::peers::{Release, Steps, UpstreamServer, if_installed};
use serde_json::json;

use self::client::Client;
use self::route::{Route, RouteSetup};
use self::run_result::RunResult;

/// The number of concurrent runs: most of them wait for a process to start.
const CONCURRENT_RUNS: usize = 4;

/// A cell of the table: the route, the server's column, the client's row.
type Cell = (Route, usize, usize);

#[test]
fn every_client_works_with_every_server_as_the_table_says() {
    check_routes(&[Route::Stdio, Route::Http, Route::Connect, Route::Front]);
}

#[test]
fn clients_and_servers_of_the_old_transport_work_as_the_table_says() {
    check_routes(&[Route::OldClient, Route::OldServer, Route::Old]);
}

#[test]
fn a_client_of_each_era_works_with_further_servers_as_the_table_says() {
    check_routes(&[Route::FurtherHttp, Route::Further]);
}

/// A FastMCP tool that uses `Context.elicit` cannot send input requests to a stateless client.
#[test]
fn a_tool_that_elicits_in_sessions_only_reaches_clients_of_every_era_with_a_forced_revision() {
    let server = UpstreamServer::FastMcp;
    if !is_server_installed(server) {
        return;
    }
    for client in client::all().into_iter().filter(|client| client.represents_its_era()) {
        if !client.is_installed() {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        let words = ["connect", "--revision", "2025-11-25", "--"].map(OsString::from);
        let words = words.into_iter().chain(server.command().unwrap()).collect();
        let command = route::creole(&home, words).unwrap();
        let report = client.run(&Steps::new().elicit("greet", json!({})), &command).unwrap();
        assert_eq!(report["elicited"], true, "{report}");
        assert_eq!(report["elicit_call"]["content"][0]["text"], "Hello, peer!", "{report}");
    }
}

/// Performs the runs of these routes and compares the results with the table.
fn check_routes(routes: &[Route]) {
    let is_used = |server: &UpstreamServer| routes.iter().any(|route| route.uses_server(*server));
    let (clients, servers) = (client::all(), servers());
    let clients: Vec<_> = clients
        .into_iter()
        .filter(|client| routes.iter().any(|route| route.uses_client(*client)))
        .collect();
    let servers: Vec<_> = servers.into_iter().filter(is_used).collect();
    let all = (clients.len(), servers.len());
    let clients: Vec<_> = clients.into_iter().filter(|client| client.is_installed()).collect();
    let servers: Vec<_> =
        servers.into_iter().filter(|server| is_server_installed(*server)).collect();
    let is_complete = (clients.len(), servers.len()) == all;
    let mut results = run_all(routes, &clients, &servers);
    let published = table::published(routes, &clients, &servers);
    let shortfall = |(cell, result): (&Cell, &RunResult)| {
        result.shortfall(published.get(cell).map(String::as_str)).map(|message| (*cell, message))
    };
    // On a busy machine a peer may start too slowly, so a failed run is repeated once, alone.
    let failed_runs: Vec<_> = results.iter().filter_map(shortfall).collect();
    for (cell, _) in failed_runs {
        let (route, column, row) = cell;
        let setup = RouteSetup::new(route, servers[column]);
        results.insert(cell, run(&setup, route, clients[row], servers[column]));
    }
    let failures: Vec<_> = results.values().filter_map(RunResult::failure).collect();
    eprintln!("{}", failures.join("\n"));
    if is_complete && table::is_to_be_written() {
        return table::write(routes, &clients, &servers, &results);
    }
    let worse: Vec<_> = results.iter().filter_map(shortfall).map(|(_, message)| message).collect();
    assert!(worse.is_empty(), "worse than docs/matrix.md:\n{}", worse.join("\n"));
}

/// Performs one run.
fn run(
    setup: &Result<RouteSetup, String>,
    route: Route,
    client: Client,
    server: UpstreamServer,
) -> RunResult {
    let (name, revision) = (client.name(), client.revision());
    let label = format!("{route:?}: {name} {revision} to {server:?}");
    let report = match setup {
        Ok(setup) => setup.run(client, server),
        Err(error) => Err(error.clone()),
    };
    RunResult::of(label, client, server, report)
}

/// The servers, newest first.
fn servers() -> Vec<UpstreamServer> {
    let mut servers: Vec<_> = UpstreamServer::ALL.into_iter().collect();
    servers.sort_by_key(|server| std::cmp::Reverse(server.revision()));
    servers.extend(Release::ALL.map(UpstreamServer::OldTypeScript));
    servers.extend(UpstreamServer::FURTHER);
    servers
}

/// Whether a server is installed. If not, this is reported on stderr, and with `CI=true` the test fails.
fn is_server_installed(server: UpstreamServer) -> bool {
    if_installed(server.name(), server.command()).is_some()
}

/// Performs all runs. Runs with one server on one route are sequential, because they would receive each other's change
/// notifications.
fn run_all(
    routes: &[Route],
    clients: &[Client],
    servers: &[UpstreamServer],
) -> BTreeMap<Cell, RunResult> {
    let groups = servers.iter().enumerate().flat_map(|(column, server)| {
        routes.iter().filter(|route| route.uses_server(*server)).map(move |route| (*route, column))
    });
    let groups: Mutex<Vec<_>> = Mutex::new(groups.collect());
    let results = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..CONCURRENT_RUNS {
            scope.spawn(|| {
                while let Some((route, column)) = next(&groups) {
                    let setup = RouteSetup::new(route, servers[column]);
                    let is_client_used =
                        |(_, client): &(usize, &Client)| route.uses_client(**client);
                    for (row, client) in clients.iter().enumerate().filter(is_client_used) {
                        let result = run(&setup, route, *client, servers[column]);
                        results.lock().unwrap().insert((route, column, row), result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap()
}

fn next<T>(queue: &Mutex<Vec<T>>) -> Option<T> {
    queue.lock().unwrap().pop()
}
