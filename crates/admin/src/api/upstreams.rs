//! The upstreams: their state, and what an operator can do with them.

use std::sync::Arc;

use creole_gateway::upstream::{Upstream, UpstreamState, UpstreamStatus};
use creole_proto::model::ListKind;
use creole_proto::revision::Revision;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Admin;
use crate::clock;
use crate::http::problem::Problem;
use crate::live::samples::{Counters, read_counters};
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/upstreams", Role::Read, "All upstreams", list),
        Route::get("/upstreams/{upstream}", Role::Read, "One upstream", show),
    ]
}

/// Whether an upstream can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UpstreamStateName {
    /// It has not started.
    Waiting,
    /// It starts for the first time.
    Starting,
    /// It can be used.
    Ready,
    /// It failed, and the next start is planned.
    Backoff,
    /// The circuit breaker refuses calls.
    Open,
    /// It failed, and is not started again.
    Dead,
}

/// An upstream in short.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct UpstreamSummary {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// Whether it can be used.
    pub(crate) state: UpstreamStateName,
    /// The era of its revision: `handshake` or `stateless`.
    #[serde(skip_serializing_if = "Option::is_none")]
    era: Option<&'static str>,
    /// Its revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// `stdio` or `http`.
    transport: &'static str,
    /// Requests that were sent to it.
    calls: u64,
    /// Those that failed.
    errors: u64,
    /// The median of their durations in the last five minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_ms: Option<f64>,
    /// The duration that 95 % of them did not exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<f64>,
    /// Requests per second in the last five minutes.
    calls_per_second: f64,
    items: ItemCounts,
    /// Why it cannot be used, or what to know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// How many items an upstream has.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct ItemCounts {
    tools: usize,
    resources: usize,
    resource_templates: usize,
    prompts: usize,
    /// Items that are not offered.
    excluded: usize,
}

/// All upstreams.
#[derive(Serialize, JsonSchema)]
struct UpstreamList {
    /// In the order of the configuration.
    items: Vec<UpstreamSummary>,
}

/// One upstream.
#[derive(Serialize, JsonSchema)]
struct UpstreamDetail {
    #[serde(flatten)]
    summary: UpstreamSummary,
    /// The last failure. It may be resolved.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<UpstreamFailure>,
    /// Its lists.
    lists: Vec<ListView>,
    /// Items that are not offered, with the reasons.
    excluded: Vec<String>,
    /// How long its last response to a list request took.
    #[serde(skip_serializing_if = "Option::is_none")]
    list_latency_ms: Option<f64>,
}

/// A failure of an upstream.
#[derive(Serialize, JsonSchema)]
struct UpstreamFailure {
    /// What failed.
    message: String,
    /// The last lines that its program wrote to standard error.
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

/// All upstreams in short, in the order of the configuration.
pub(crate) fn summaries(admin: &Admin) -> Vec<UpstreamSummary> {
    let counters = read_counters(&admin.telemetry.metrics().collect());
    all(admin).iter().map(|it| summary(admin, &it.status(), &counters)).collect()
}

/// The upstreams of all servers. Servers do not share upstreams, also not those of the same name.
fn all(admin: &Admin) -> Vec<Arc<Upstream>> {
    let servers = admin.host.servers();
    servers.iter().flat_map(|server| server.federation.upstreams().to_vec()).collect()
}

fn summary(admin: &Admin, status: &UpstreamStatus, counters: &Counters) -> UpstreamSummary {
    let rates = admin.live.samples.upstream_rates(&status.name, counters);
    let counter = counters.upstreams.get(&status.name);
    let (state, note) = match &status.state {
        UpstreamState::Waiting => (UpstreamStateName::Waiting, None),
        UpstreamState::Starting => (UpstreamStateName::Starting, None),
        UpstreamState::Ready => (UpstreamStateName::Ready, None),
        UpstreamState::Failed(reason) => (UpstreamStateName::Backoff, Some(reason.clone())),
    };
    let rules = status.revision.as_deref().and_then(Revision::from_name).map(Revision::rules);
    UpstreamSummary {
        name: status.name.clone(),
        state,
        era: rules.map(|rules| rules.era.name()),
        revision: status.revision.clone(),
        transport: status.transport,
        calls: counter.map_or(0, |counter| counter.calls),
        errors: counter.map_or(0, |counter| counter.errors),
        p50_ms: rates.p50_ms,
        p95_ms: rates.p95_ms,
        calls_per_second: rates.calls_per_second,
        items: ItemCounts {
            tools: status.items(ListKind::Tools),
            resources: status.items(ListKind::Resources),
            resource_templates: status.items(ListKind::Templates),
            prompts: status.items(ListKind::Prompts),
            excluded: status.excluded.len(),
        },
        note,
    }
}

async fn list(admin: Arc<Admin>, _: ApiRequest) -> Result<UpstreamList, Problem> {
    Ok(UpstreamList { items: summaries(&admin) })
}

async fn show(admin: Arc<Admin>, request: ApiRequest) -> Result<UpstreamDetail, Problem> {
    let name = request.name(0);
    let found = all(&admin).into_iter().find(|upstream| upstream.name() == name);
    let upstream = found.ok_or_else(|| Problem::not_found("upstream", name))?;
    let status = upstream.status();
    let summary = summary(&admin, &status, &read_counters(&admin.telemetry.metrics().collect()));
    let failure = status.last_error.map(|error| UpstreamFailure {
        message: error.message,
        stderr: error.stderr.iter().flat_map(|text| text.lines()).map(str::to_owned).collect(),
    });
    Ok(UpstreamDetail {
        summary,
        last_error: failure,
        lists: status
            .lists
            .into_iter()
            .map(|it| ListView { kind: it.kind.member(), items: it.items, failure: it.failure })
            .collect(),
        excluded: status.excluded,
        list_latency_ms: status.latency.map(clock::ms),
    })
}
