//! The process at a glance.

mod alerts;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole::internal::telemetry::metrics::{Snapshot, table};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::denials;
use crate::api::upstreams::{self, UpstreamSummary, gauge, pins, total};
use crate::http::problem::Problem;
use crate::live::denials::DenialGroup;
use crate::live::samples::{Points, Rates, read_counters};
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};
use alerts::Alert;

/// Over what time refusals are shown, and how many groups of them.
const REFUSAL_SPAN: Duration = Duration::from_secs(60 * 60);
const MAX_REFUSALS: usize = 5;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/overview", Role::Read, "Totals, rates, upstreams and what is wrong", show)]
}

/// The process at a glance.
#[derive(Serialize, JsonSchema)]
struct Overview {
    /// The time now.
    now: String,
    /// How long the process runs.
    uptime_ms: f64,
    totals: Totals,
    rates: OverTime<Rates>,
    points: OverTime<Points>,
    /// The upstreams, in the order of the configuration.
    upstreams: Vec<UpstreamSummary>,
    servers: Vec<ServerTotals>,
    /// What is wrong. Empty: nothing.
    alerts: Vec<Alert>,
    refusals: Refusals,
}

/// The last minute and the last quarter of an hour.
#[derive(Serialize, JsonSchema)]
struct OverTime<T> {
    minute: T,
    quarter: T,
}

/// Counts since the start, and of what exists now.
#[derive(Serialize, JsonSchema)]
struct Totals {
    /// Calls that ended.
    calls: u64,
    /// Those that failed.
    errors: u64,
    /// Calls that run.
    active: usize,
    /// Sessions of clients.
    sessions: usize,
    /// Event streams to clients.
    streams: usize,
    /// Calls that wait for input.
    parked: usize,
    /// Tasks, by their status.
    tasks: BTreeMap<String, usize>,
    /// Tools whose definitions changed and are not approved.
    withheld: usize,
    /// Refused calls since the recording began.
    denied: u64,
}

/// The calls of a server.
#[derive(Serialize, JsonSchema)]
struct ServerTotals {
    /// Its name.
    name: String,
    /// Calls that ended.
    calls: u64,
    /// Those that failed.
    errors: u64,
}

/// Refused calls of the last hour.
#[derive(Serialize, JsonSchema)]
struct Refusals {
    /// Since when.
    since: String,
    /// How many.
    total: u64,
    /// The newest groups.
    groups: Vec<DenialGroup>,
}

async fn show(admin: Arc<Admin>, _: ApiRequest) -> Result<Overview, Problem> {
    let snapshot = admin.telemetry.metrics().collect();
    let counters = read_counters(&snapshot);
    let withheld = pins::withheld(&admin).await;
    let (minute, quarter) = admin.live.samples.rates(&counters);
    let (fine, coarse) = admin.live.samples.points(&counters);
    let upstreams = upstreams::summaries(&admin);
    let refused =
        denials::denials(&admin, SystemTime::now().checked_sub(REFUSAL_SPAN), MAX_REFUSALS);
    Ok(Overview {
        now: clock::now(),
        uptime_ms: clock::ms(admin.started.1.elapsed()),
        totals: Totals {
            calls: counters.servers.values().map(|counter| counter.calls).sum(),
            errors: counters.servers.values().map(|counter| counter.errors).sum(),
            active: total(&snapshot, &table::CALLS_ACTIVE),
            sessions: total(&snapshot, &table::SESSIONS),
            streams: total(&snapshot, &table::STREAMS),
            parked: total(&snapshot, &table::PARKED_CALLS),
            tasks: tasks(&snapshot),
            withheld,
            denied: admin.live.denials().total(),
        },
        rates: OverTime { minute, quarter },
        points: OverTime { minute: fine, quarter: coarse },
        alerts: alerts::alerts(&admin, &upstreams, &snapshot, withheld),
        upstreams,
        servers: admin
            .host
            .servers()
            .into_iter()
            .map(|server| {
                let counter = counters.servers.get(&server.name);
                ServerTotals {
                    calls: counter.map_or(0, |counter| counter.calls),
                    errors: counter.map_or(0, |counter| counter.errors),
                    name: server.name,
                }
            })
            .collect(),
        refusals: Refusals { since: refused.since, total: refused.total, groups: refused.items },
    })
}

/// The tasks by their status.
fn tasks(snapshot: &Snapshot) -> BTreeMap<String, usize> {
    let family = snapshot.family(table::TASKS.name);
    let series = family.into_iter().flat_map(|family| &family.series);
    let names = series.filter_map(|series| series.labels.first()).map(ToString::to_string);
    names.map(|name| (name.clone(), gauge(snapshot, &table::TASKS, &name, None))).collect()
}
