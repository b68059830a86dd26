//! The published table of results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::{env, fs};

use creole_acceptance::peers::UpstreamServer;
use creole_acceptance::stage::stdio::repository;

use super::client::Client;
use super::route::Route;
use super::seen::{Feature, Seen};
use super::{Place, repertoire};

const HEAD: &str = "\
<!-- Made by the test `matrix` in acceptance/; see there how to write it anew. -->

# Who works with whom

Each cell is a conversation that a test has: the client on the left talks to Creole, Creole to the server above. The \
SDKs at the ends are published ones, pinned in [acceptance/peers](../acceptance/peers/README.md): the newest of each, and \
older releases that stop at an older revision. `typescript-v2` as a server is told to refuse older clients.

In a conversation the client does all that both ends have:
";

const TAIL: &str = "
Structured results and elicitation exist from 2025-06-18 on, so they are not asked for where one end is older. \
`rmcp` is not told to cancel, and `fastmcp` has no subscriptions, by which changes are told in 2026-07-28. \
`typescript-v1.9` has no Streamable HTTP; HTTP+SSE is the transport of its revision.
";

/// The explanation of a feature in the document.
fn meaning(feature: Feature) -> &'static str {
    match feature {
        Feature::Call => "a tool is called and answers",
        Feature::Structured => "a tool answers with data",
        Feature::Progress => "a tool tells of its progress",
        Feature::Cancel => "a call is cancelled, and the server notices",
        Feature::Elicit => "a tool asks the person while it runs, and goes on with the answer",
        Feature::Sample => "a tool asks the client's model, and goes on with the answer",
        Feature::Changed => "the list of tools changes, and the client is told",
    }
}

/// The sections of the document about the routes.
fn sections(
    routes: &[Route],
    clients: &[Client],
    servers: &[UpstreamServer],
    seen: &BTreeMap<Place, Seen>,
) -> BTreeMap<Route, String> {
    let section = |route: &Route| {
        let taken = |server: &UpstreamServer| route.is_taken(*server);
        let mut text = format!("\n## From {}\n\n| |", route.title());
        for server in servers.iter().copied().filter(taken) {
            // Writing to a text cannot fail.
            let _ = write!(text, " {} |", title(server));
        }
        text.push_str("\n|---|");
        text.push_str(&"---|".repeat(servers.iter().filter(|server| taken(server)).count()));
        let takes = |(_, client): &(usize, &Client)| route.is_taken_by(**client);
        for (row, client) in clients.iter().enumerate().filter(takes) {
            let _ = write!(text, "\n| {} {} |", client.name(), client.revision());
            for column in (0..servers.len()).filter(|column| taken(&servers[*column])) {
                let _ = write!(text, " {} |", seen[&(*route, column, row)].cell());
            }
        }
        text.push('\n');
        if *route == Route::Further {
            text.push_str(&repertoires(servers));
        }
        (*route, text)
    };
    routes.iter().map(section).collect()
}

/// The title of a server's column.
fn title(server: UpstreamServer) -> String {
    format!("{} {}", server.name(), server.revision())
}

/// The published section about a route, with its title.
fn section_of(text: &str, route: Route) -> String {
    let title = format!("\n## From {}\n", route.title());
    let Some((_, rest)) = text.split_once(&title) else { return String::new() };
    let body = rest.split("\n## ").next().unwrap_or_default();
    format!("{title}{body}{}", if body.ends_with('\n') { "" } else { "\n" })
}

/// The features of each further server.
fn repertoires(servers: &[UpstreamServer]) -> String {
    let mut text = String::from("\nWhat these servers have:\n\n| |");
    for feature in Feature::ALL {
        let _ = write!(text, " {} |", feature.name());
    }
    text.push_str(&format!("\n|---|{}", "---|".repeat(Feature::ALL.len())));
    for server in servers.iter().filter(|server| UpstreamServer::FURTHER.contains(server)) {
        let _ = write!(text, "\n| {} |", server.name());
        for feature in Feature::ALL {
            let has = repertoire::trick(*server, feature, "").is_some();
            text.push_str(if has { " yes |" } else { " - |" });
        }
    }
    text.push('\n');
    text
}

/// The published table by the names of clients and servers, without missing cells.
pub(super) fn published(
    routes: &[Route],
    clients: &[Client],
    servers: &[UpstreamServer],
) -> BTreeMap<Place, String> {
    let text = fs::read_to_string(file()).unwrap_or_default();
    let mut cells = BTreeMap::new();
    for route in routes {
        let section = section_of(&text, *route);
        let line = |begin: &str| {
            let found = section.lines().find_map(|line| line.strip_prefix(begin));
            found.unwrap_or_default().split('|').map(str::trim)
        };
        let head: Vec<_> = line("| |").collect();
        for (row, client) in clients.iter().enumerate() {
            let texts = line(&format!("| {} {} |", client.name(), client.revision()));
            for (name, text) in head.iter().zip(texts).filter(|(_, text)| !text.is_empty()) {
                let column = servers.iter().position(|server| *name == title(*server));
                cells.extend(column.map(|column| ((*route, column, row), text.to_owned())));
            }
        }
    }
    cells
}

fn file() -> std::path::PathBuf {
    repository().join("docs/matrix.md")
}

/// Whether the table is to be rewritten.
pub(super) fn is_to_be_written() -> bool {
    env::var_os("CREOLE_WRITE_MATRIX").is_some()
}

/// Rewrites the document. Sections about other routes stay unchanged.
pub(super) fn write(
    routes: &[Route],
    clients: &[Client],
    servers: &[UpstreamServer],
    seen: &BTreeMap<Place, Seen>,
) {
    let before = fs::read_to_string(file()).unwrap_or_default();
    let mut sections = sections(routes, clients, servers, seen);
    let mut text = format!("{HEAD}\n");
    for feature in Feature::ALL {
        let _ = writeln!(text, "- {}: {}", feature.name(), meaning(feature));
    }
    text.push_str(TAIL);
    for route in Route::ALL {
        let section = sections.remove(&route).unwrap_or_else(|| section_of(&before, route));
        text.push_str(&section);
    }
    fs::write(file(), text).unwrap();
}
