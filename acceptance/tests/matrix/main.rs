//! Tests every client through Creole with every server, and checks the table of results: `docs/matrix.md`.
//!
//! The clients and servers are third-party SDKs, including older releases. The results must be at least as good as the
//! table. `CREOLE_WRITE_MATRIX=1 cargo test -p creole-acceptance --test matrix -- --test-threads=1` rewrites the table.
//! An SDK that cannot be installed is reported on stderr and skipped. With `CI=true` that is a failure.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stderr, reason = "a skipped test is reported on stderr")]

mod client;
mod repertoire;
mod route;
mod seen;
mod table;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Mutex;
use std::{env, thread};

use creole_acceptance::peers::{Release, Steps, UpstreamServer};
use serde_json::json;

use self::client::Client;
use self::route::{Route, Staged};
use self::seen::Seen;

/// The number of concurrent runs: most of them wait for a process to start.
const AT_ONCE: usize = 4;

/// A cell of the table: the route, the server's column, the client's row.
type Place = (Route, usize, usize);

#[test]
fn every_client_works_with_every_server_as_the_table_says() {
    works(&[Route::Stdio, Route::Http, Route::Connect, Route::Front]);
}

#[test]
fn clients_and_servers_of_the_old_transport_work_as_the_table_says() {
    works(&[Route::OldClient, Route::OldServer, Route::Old]);
}

#[test]
fn a_client_of_each_era_works_with_further_servers_as_the_table_says() {
    works(&[Route::FurtherHttp, Route::Further]);
}

/// A FastMCP tool that uses `Context.elicit` cannot send input requests to a stateless client.
#[test]
fn a_tool_that_asks_in_sessions_only_asks_clients_of_every_era_once_that_is_forced() {
    let server = UpstreamServer::FastMcp;
    if !is_here(server.name(), missing(server)) {
        return;
    }
    for client in client::all().into_iter().filter(|client| client.is_one_of_its_era()) {
        if !is_here(client.name(), client.missing()) {
            continue;
        }
        let home = tempfile::tempdir().unwrap();
        let words = ["connect", "--revision", "2025-11-25", "--"].map(OsString::from);
        let words = words.into_iter().chain(server.command().unwrap()).collect();
        let command = route::creole(&home, words).unwrap();
        let told = client.run(&Steps::new().elicit("greet", json!({})), &command).unwrap();
        assert_eq!(told["elicited"], true, "{told}");
        assert_eq!(told["elicit_call"]["content"][0]["text"], "Hello, peer!", "{told}");
    }
}

/// Performs the runs of these routes and compares the results with the table.
fn works(routes: &[Route]) {
    let is_here_at_all =
        |server: &UpstreamServer| routes.iter().any(|route| route.is_taken(*server));
    let (clients, servers) = (client::all(), servers());
    let clients: Vec<_> = clients
        .into_iter()
        .filter(|client| routes.iter().any(|route| route.is_taken_by(*client)))
        .collect();
    let servers: Vec<_> = servers.into_iter().filter(is_here_at_all).collect();
    let is_complete = clients.iter().all(|client| is_here(client.name(), client.missing()))
        & servers.iter().all(|server| is_here(server.name(), missing(*server)));
    let clients: Vec<_> = clients.into_iter().filter(|one| one.missing().is_none()).collect();
    let servers: Vec<_> = servers.into_iter().filter(|one| missing(*one).is_none()).collect();
    let mut seen = look(routes, &clients, &servers);
    let published = table::published(routes, &clients, &servers);
    let shortfall = |(place, seen): (&Place, &Seen)| {
        seen.shortfall(published.get(place).map(String::as_str)).map(|told| (*place, told))
    };
    // On a busy machine a peer may start too slowly, so a failed run is repeated once, alone.
    let doubtful: Vec<_> = seen.iter().filter_map(shortfall).collect();
    for (place, _) in doubtful {
        let (route, column, row) = place;
        let staged = Staged::new(route, servers[column]);
        seen.insert(place, talk(&staged, route, clients[row], servers[column]));
    }
    let complaints: Vec<_> = seen.values().filter_map(Seen::complaint).collect();
    eprintln!("{}", complaints.join("\n"));
    if is_complete && table::is_to_be_written() {
        return table::write(routes, &clients, &servers, &seen);
    }
    let worse: Vec<_> = seen.iter().filter_map(shortfall).map(|(_, told)| told).collect();
    assert!(worse.is_empty(), "docs/matrix.md promises more:\n{}", worse.join("\n"));
}

/// Performs one run.
fn talk(
    staged: &Result<Staged, String>,
    route: Route,
    client: Client,
    server: UpstreamServer,
) -> Seen {
    let (name, revision) = (client.name(), client.revision());
    let whose = format!("{route:?}: {name} {revision} to {server:?}");
    let came = match staged {
        Ok(staged) => staged.talk(client, server),
        Err(error) => Err(error.clone()),
    };
    Seen::of(whose, client, server, came)
}

/// The servers, newest first.
fn servers() -> Vec<UpstreamServer> {
    let mut servers: Vec<_> = UpstreamServer::ALL.into_iter().collect();
    servers.sort_by_key(|server| std::cmp::Reverse(server.revision()));
    servers.extend(Release::ALL.map(UpstreamServer::OldTypeScript));
    servers.extend(UpstreamServer::FURTHER);
    servers
}

fn missing(server: UpstreamServer) -> Option<String> {
    server.command().err().map(|missing| missing.to_string())
}

/// Whether a client or server is installed. If not, this is reported on stderr, and with `CI=true` the test fails.
fn is_here(name: &str, missing: Option<String>) -> bool {
    let Some(missing) = missing else { return true };
    assert!(env::var("CI").as_deref() != Ok("true"), "{name} is not installed: {missing}");
    eprintln!("NOT TESTED with {name}: {missing}");
    false
}

/// Performs all runs. Runs with one server on one route are sequential, because they would receive each other's change
/// notifications.
fn look(routes: &[Route], clients: &[Client], servers: &[UpstreamServer]) -> BTreeMap<Place, Seen> {
    let groups = servers.iter().enumerate().flat_map(|(column, server)| {
        routes.iter().filter(|route| route.is_taken(*server)).map(move |route| (*route, column))
    });
    let groups: Mutex<Vec<_>> = Mutex::new(groups.collect());
    let seen = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((route, column)) = next(&groups) {
                    let staged = Staged::new(route, servers[column]);
                    let takes = |(_, client): &(usize, &Client)| route.is_taken_by(**client);
                    for (row, client) in clients.iter().enumerate().filter(takes) {
                        let came = talk(&staged, route, *client, servers[column]);
                        seen.lock().unwrap().insert((route, column, row), came);
                    }
                }
            });
        }
    });
    seen.into_inner().unwrap()
}

fn next<T>(of: &Mutex<Vec<T>>) -> Option<T> {
    of.lock().unwrap().pop()
}
