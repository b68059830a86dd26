//! One upstream with all that is known of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use creole::internal::telemetry::metrics::{Snapshot, table};
use creole_gateway::feature_support::{FeatureRow, capability_names, support_table};
use creole_gateway::upstream::{
    InspectedConnection, PhaseChange, Upstream, UpstreamLocation, UpstreamPhase, UpstreamServer,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::upstreams::{UpstreamStateName, UpstreamSummary, find, gauge, summary};
use crate::http::problem::Problem;
use crate::live::call::Program;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};

/// How many lines of standard error are shown.
const MAX_STDERR_LINES: usize = 200;

pub(in crate::api) fn routes() -> Vec<Route> {
    vec![Route::get("/upstreams/{upstream}", Role::Read, "One upstream", show)]
}

/// One upstream.
#[derive(Serialize, JsonSchema)]
struct UpstreamDetail {
    #[serde(flatten)]
    summary: UpstreamSummary,
    /// Since when it is in its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    /// Its address without credentials and query.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    /// The name of its program without arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    /// What it says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Program>,
    /// What it offers.
    capabilities: Vec<&'static str>,
    /// The processes of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<ProcessGroup>,
    /// The last failure. It may be resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<UpstreamFailure>,
    /// The last lines that its program wrote to standard error, oldest first.
    stderr: Vec<String>,
    /// Its lists.
    lists: Vec<ListView>,
    /// Items that are not offered, with the reasons.
    excluded: Vec<String>,
    /// How long its last response to a list request took.
    #[serde(skip_serializing_if = "Option::is_none")]
    list_latency_ms: Option<f64>,
    starts: StartCounts,
    connections: ConnectionCounts,
    /// Its states since the start of the process, oldest first. Older ones are left out.
    history: Vec<StateChange>,
    /// What clients of each revision get of it. Empty until it has responded.
    fidelity: Vec<FidelityRow>,
}

/// The processes of an upstream.
#[derive(Serialize, JsonSchema)]
struct ProcessGroup {
    /// How many.
    pids: usize,
    /// Their memory.
    memory_bytes: usize,
}

/// A failure of an upstream.
#[derive(Serialize, JsonSchema)]
struct UpstreamFailure {
    /// What failed.
    message: String,
    /// The last lines that its program wrote to standard error before it.
    stderr: Vec<String>,
}

/// One list of an upstream.
#[derive(Serialize, JsonSchema)]
struct ListView {
    /// `tools`, `resources`, `resourceTemplates` or `prompts`.
    kind: &'static str,
    /// How many items it has.
    items: usize,
    /// Why its last fetch failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// How often an upstream was started or connected to by the gateway itself.
#[derive(Serialize, JsonSchema)]
struct StartCounts {
    /// How often it worked.
    ready: usize,
    /// How often it failed.
    failed: usize,
}

/// The open connections to an upstream.
#[derive(Serialize, JsonSchema)]
struct ConnectionCounts {
    /// How many no call uses.
    idle: usize,
    /// How many a call or a client's session uses.
    busy: usize,
    /// The connections by their owners.
    owners: Vec<ConnectionOwner>,
}

/// The connections of one owner.
#[derive(Serialize, JsonSchema)]
struct ConnectionOwner {
    /// `gateway`, `lists` for those that only fetch lists, or the start of the digest of a principal.
    owner: String,
    idle: usize,
    busy: usize,
    /// How many calls run in them.
    calls: usize,
}

/// An upstream entered a state.
#[derive(Serialize, JsonSchema)]
struct StateChange {
    /// When.
    at: String,
    /// The state from then on.
    state: UpstreamStateName,
}

/// What clients of each revision get of one feature.
#[derive(Serialize, JsonSchema)]
struct FidelityRow {
    /// The feature.
    feature: &'static str,
    /// The revision of a client, and what it gets.
    cells: BTreeMap<&'static str, FidelityCell>,
}

/// What clients of one revision get of a feature.
#[derive(Serialize, JsonSchema)]
struct FidelityCell {
    /// `-` (the upstream lacks it), `same`, `translated`, `degraded` or `refused`.
    support: &'static str,
    /// What happens to it, if something does.
    #[serde(skip_serializing_if = "Option::is_none")]
    how: Option<&'static str>,
}

async fn show(admin: Arc<Admin>, request: ApiRequest) -> Result<UpstreamDetail, Problem> {
    let upstream = find(&admin, request.name(0))?;
    let status = upstream.status();
    let snapshot = admin.telemetry.metrics().collect();
    let (address, program) = match upstream.location() {
        UpstreamLocation::Url(url) => (Some(url), None),
        UpstreamLocation::Program(program) => (None, Some(program)),
    };
    let failure = status.last_error.map(|error| UpstreamFailure {
        message: error.message,
        stderr: error.stderr.iter().flat_map(|text| text.lines()).map(str::to_owned).collect(),
    });
    let (history, server) = (history(&upstream), upstream.server());
    let start_count =
        |outcome| gauge(&snapshot, &table::UPSTREAM_STARTS, &status.name, Some(outcome));
    Ok(UpstreamDetail {
        summary: summary(&admin, &upstream, &snapshot),
        since: history.last().map(|change| change.at.clone()),
        process: program.as_ref().and_then(|_| process_group(&snapshot, &status.name)),
        address,
        program,
        capabilities: server.as_ref().map_or_else(Vec::new, |it| capability_names(it.capabilities)),
        fidelity: server.as_ref().map_or_else(Vec::new, fidelity),
        server: server.map(|it| Program { name: it.name, version: it.version }),
        last_error: failure,
        stderr: upstream.stderr_lines(MAX_STDERR_LINES),
        lists: status
            .lists
            .into_iter()
            .map(|it| ListView { kind: it.kind.member(), items: it.items, failure: it.failure })
            .collect(),
        excluded: status.excluded,
        list_latency_ms: status.latency.map(clock::ms),
        starts: StartCounts { ready: start_count("ready"), failed: start_count("failed") },
        connections: connections(upstream.inspect_connections()),
        history,
    })
}

fn process_group(snapshot: &Snapshot, upstream: &str) -> Option<ProcessGroup> {
    let pids = gauge(snapshot, &table::UPSTREAM_PROCESSES, upstream, None);
    let memory_bytes = gauge(snapshot, &table::UPSTREAM_PROCESS_MEMORY, upstream, None);
    (pids > 0).then_some(ProcessGroup { pids, memory_bytes })
}

fn history(upstream: &Upstream) -> Vec<StateChange> {
    let change = |change: PhaseChange| StateChange {
        at: clock::text(change.at),
        state: match change.phase {
            UpstreamPhase::Waiting => UpstreamStateName::Waiting,
            UpstreamPhase::Starting => UpstreamStateName::Starting,
            UpstreamPhase::Ready => UpstreamStateName::Ready,
            UpstreamPhase::Backoff => UpstreamStateName::Backoff,
            UpstreamPhase::Open => UpstreamStateName::Open,
        },
    };
    upstream.history().into_iter().map(change).collect()
}

fn connections(open: Vec<InspectedConnection>) -> ConnectionCounts {
    let mut owners: BTreeMap<String, ConnectionOwner> = BTreeMap::new();
    for InspectedConnection { owner, is_busy, calls } in open {
        let entry = owners.entry(owner.clone()).or_insert(ConnectionOwner {
            owner,
            idle: 0,
            busy: 0,
            calls: 0,
        });
        entry.busy += usize::from(is_busy);
        entry.idle += usize::from(!is_busy);
        entry.calls += calls;
    }
    let owners: Vec<ConnectionOwner> = owners.into_values().collect();
    ConnectionCounts {
        idle: owners.iter().map(|owner| owner.idle).sum(),
        busy: owners.iter().map(|owner| owner.busy).sum(),
        owners,
    }
}

fn fidelity(server: &UpstreamServer) -> Vec<FidelityRow> {
    let row = |FeatureRow { feature, verdicts }| FidelityRow {
        feature,
        cells: verdicts
            .into_iter()
            .map(|(client, support, how)| {
                let how = Some(how).filter(|how| !how.is_empty());
                (client, FidelityCell { support: support.label(), how })
            })
            .collect(),
    };
    support_table(server.rules, &server.capabilities).into_iter().map(row).collect()
}
