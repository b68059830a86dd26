//! `creole status`: the state of each upstream of a configuration, or of one server.

use std::time::Instant;

use creole::client::Address;
use creole::proto::revision::Era;
use creole_gateway::upstream::Affinity;
use tokio::runtime::Builder;

use super::list::offered;
use super::serve::{Served, runtime};
use crate::args::{ServeArgs, StatusArgs};
use crate::failure::Failure;
use crate::render::for_stdout;
use crate::session::{Inside, with_client};
use crate::target::Place;
use crate::upstreams::{self, Row};
use crate::{output, progress, target};

/// Runs the verb.
pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let rows = match target::looked_at(&args.words, &args.peer)? {
        Place::Inside(wanted) => of_configuration(&wanted)?,
        place @ Place::Way(_) => vec![of_server(place, args)?],
    };
    match args.peer.json {
        true => output::data(&format!("{}\n", upstreams::document(&rows)))?,
        false if rows.is_empty() => output::data("the configuration has no upstreams\n")?,
        false => output::data(&for_stdout(&upstreams::table(&rows)))?,
    }
    match rows.is_empty() || rows.iter().any(Row::is_ready) {
        true => Ok(()),
        false => Err(Failure::Call("no upstream answered".to_owned())),
    }
}

/// Starts every upstream of a configuration, waits for each, and ends them.
fn of_configuration(wanted: &target::Inside<'_>) -> Result<Vec<Row>, Failure> {
    let plan = Inside::load(wanted)?.into_plan();
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let rows = runtime.block_on(async {
        // Nobody calls, so no upstream waits for its only caller.
        let served = Served::new(&plan, &ServeArgs::default(), Affinity::Principal).await?;
        progress::shown(served.federation.wait_until_settled()).await;
        let rows: Vec<Row> = served.federation.status().iter().map(Row::from).collect();
        served.close().await;
        Ok(rows)
    });
    runtime.shutdown_background();
    let rows: Result<Vec<Row>, Failure> = rows;
    Ok([rows?, upstreams::documents(&plan)].concat())
}

/// What a server tells of itself by the protocol: it may be a gateway, whose upstreams only its own operator sees.
fn of_server(place: Place<'_>, args: &StatusArgs) -> Result<Row, Failure> {
    let name = place.name().to_owned();
    let transport = match &place {
        Place::Way(way) if matches!(**way, Address::Child(_)) => "stdio",
        _ => "http",
    };
    with_client(place, &args.peer, Era::Stateless, async |client| {
        let mut row = Row { name: name.clone(), state: "ready", ..Row::default() };
        row.revision = Some(client.connection().greeting().version.clone());
        row.transport = transport;
        for kind in offered(client) {
            let began = Instant::now();
            match client.list(kind).await {
                Ok(items) => {
                    row.latency = Some(began.elapsed());
                    row.lists.push((kind, items.len()));
                }
                Err(fault) => row.failed_lists.push((kind, fault.detail)),
            }
        }
        Ok(row)
    })
}
