//! `creole status`: prints the state of each upstream of a configuration, or of one server.

use std::time::Instant;

use creole::client::Address;
use creole_gateway::upstream::Affinity;
use tokio::runtime::Builder;

use super::list::declared_lists;
use crate::args::{ServeArgs, StatusArgs};
use crate::failure::Failure;
use crate::instance::{no_export, runtime, start_instance};
use crate::output::progress;
use crate::output::render::for_stdout;
use crate::session::{LoadedConfig, SessionPurpose, with_client};
use crate::target::ServerTarget;
use crate::upstreams::UpstreamRow;
use crate::{output, target, upstreams};

/// Runs the verb.
pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let rows = match target::status_target(&args.words, &args.peer)? {
        ServerTarget::Config(wanted) => config_status(&wanted)?,
        place @ ServerTarget::Address(_) => vec![server_status(place, args)?],
    };
    match args.peer.json {
        true => output::write_data(&format!("{}\n", upstreams::document(&rows)))?,
        false if rows.is_empty() => output::write_data("the configuration has no upstreams\n")?,
        false => output::write_data(&for_stdout(&upstreams::table(&rows)))?,
    }
    match rows.is_empty() || rows.iter().any(UpstreamRow::is_ready) {
        true => Ok(()),
        false => Err(Failure::Call("no upstream responded".to_owned())),
    }
}

/// Starts every upstream of a configuration, waits for each, and ends them.
fn config_status(wanted: &target::ConfigTarget<'_>) -> Result<Vec<UpstreamRow>, Failure> {
    let plan = LoadedConfig::load(wanted)?.into_plan();
    let runtime = runtime(&mut Builder::new_current_thread())?;
    let rows = runtime.block_on(async {
        // There is no client, so no upstream waits for its only caller.
        let served =
            start_instance(&plan, &ServeArgs::default(), &no_export(), Affinity::Principal).await?;
        progress::with_progress(served.federation.wait_until_settled()).await;
        let rows: Vec<UpstreamRow> =
            served.federation.status().iter().map(UpstreamRow::from).collect();
        served.close().await;
        Ok(rows)
    });
    runtime.shutdown_background();
    let rows: Result<Vec<UpstreamRow>, Failure> = rows;
    Ok([rows?, upstreams::documents(&plan)].concat())
}

/// The state of a server as the protocol shows it. The server may be a gateway, whose upstreams only its operator sees.
fn server_status(target: ServerTarget<'_>, args: &StatusArgs) -> Result<UpstreamRow, Failure> {
    let name = target.name().to_owned();
    let transport = match &target {
        ServerTarget::Address(address) if matches!(**address, Address::Child(_)) => "stdio",
        _ => "http",
    };
    with_client(target, &args.peer, SessionPurpose::Inspect, async |client| {
        let mut row = UpstreamRow { name: name.clone(), state: "ready", ..UpstreamRow::default() };
        row.revision = Some(client.connection().greeting().version.clone());
        row.transport = transport;
        for kind in declared_lists(client) {
            let started = Instant::now();
            match client.list(kind).await {
                Ok(items) => {
                    row.latency = Some(started.elapsed());
                    row.lists.push((kind, items.len()));
                }
                Err(fault) => row.failed_lists.push((kind, fault.detail)),
            }
        }
        Ok(row)
    })
}
