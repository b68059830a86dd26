//! The upstreams: their state, and what an operator can do with them.

pub(super) mod detail;
pub(super) mod pins;

use std::sync::Arc;

use ::http::StatusCode;
use creole::internal::task::random_id;
use creole::internal::telemetry::metrics::{
    MetricDef, SeriesSnapshot, SeriesValue, Snapshot, table,
};
use creole_gateway::upstream::{Upstream, UpstreamState};
use creole_proto::model::ListKind;
use creole_proto::revision::Revision;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Admin;
use crate::api::session::EmptyBody;
use crate::clock;
use crate::http::problem::{Problem, ProblemCode};
use crate::live::samples::read_counters;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/upstreams", Role::Read, "All upstreams", list),
        Route::post::<EmptyBody, _, _, _>(
            "/upstreams/{upstream}/restart",
            Role::Operate,
            StatusCode::ACCEPTED,
            "Closes the connections of an upstream, ends its program, and connects again",
            |admin, request| act(admin, request, UpstreamAction::Restart),
        ),
        Route::post::<EmptyBody, _, _, _>(
            "/upstreams/{upstream}/probe",
            Role::Operate,
            StatusCode::ACCEPTED,
            "Asks an upstream whether it responds, and connects to it without waiting",
            |admin, request| act(admin, request, UpstreamAction::Probe),
        ),
        Route::post::<EmptyBody, _, _, _>(
            "/upstreams/{upstream}/breaker/reset",
            Role::Operate,
            StatusCode::ACCEPTED,
            "Lets calls pass the circuit breaker of an upstream again",
            |admin, request| act(admin, request, UpstreamAction::ResetBreaker),
        ),
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
    /// The circuit breaker: `closed`, `open`, `half_open` or `none`.
    breaker: &'static str,
    /// When the next attempt to connect begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_start_ms: Option<f64>,
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
    /// Tools whose definitions changed and are not approved.
    withheld: usize,
}

/// All upstreams.
#[derive(Serialize, JsonSchema)]
struct UpstreamList {
    /// In the order of the configuration.
    items: Vec<UpstreamSummary>,
}

/// What an operator can do with an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum UpstreamAction {
    Restart,
    Probe,
    ResetBreaker,
}

/// An action that was started.
#[derive(Serialize, JsonSchema)]
struct StartedAction {
    /// The id of the operation in the log.
    operation: String,
    /// The upstream.
    upstream: String,
    /// What is done.
    action: UpstreamAction,
}

async fn act(
    admin: Arc<Admin>,
    request: ApiRequest,
    action: UpstreamAction,
) -> Result<StartedAction, Problem> {
    request.json::<EmptyBody>()?;
    let upstream = find(&admin, request.name(0))?;
    let operation = random_id()
        .map_err(|_| Problem::new(ProblemCode::Internal, "The system has no random bytes"))?;
    let (by, name) = (request.caller()?.name().to_owned(), upstream.name().to_owned());
    tracing::info!(target: "creole::admin", by, operation, upstream = name, ?action, "an operator acts on an upstream");
    match action {
        UpstreamAction::Restart => {
            tokio::spawn(async move { upstream.restart().await });
        }
        UpstreamAction::Probe => {
            let operation = operation.clone();
            tokio::spawn(async move {
                if let Err(fault) = upstream.probe().await {
                    tracing::warn!(target: "creole::admin", operation, upstream = upstream.name(), reason = fault.detail, "the upstream does not respond");
                }
            });
        }
        UpstreamAction::ResetBreaker if upstream.reset_breakers() => {}
        UpstreamAction::ResetBreaker => {
            let title = format!("The upstream `{name}` has no circuit breaker");
            return Err(Problem::new(ProblemCode::Conflict, title));
        }
    }
    Ok(StartedAction { operation, upstream: name, action })
}

/// The upstream of this name.
pub(super) fn find(admin: &Admin, name: &str) -> Result<Arc<Upstream>, Problem> {
    let found = all(admin).into_iter().find(|upstream| upstream.name() == name);
    found.ok_or_else(|| Problem::not_found("upstream", name))
}

/// All upstreams in short, in the order of the configuration.
pub(crate) fn summaries(admin: &Admin) -> Vec<UpstreamSummary> {
    let snapshot = admin.telemetry.metrics().collect();
    all(admin).iter().map(|upstream| summary(admin, upstream, &snapshot)).collect()
}

/// The upstreams of all servers. Servers do not share upstreams, also not those of the same name.
pub(super) fn all(admin: &Admin) -> Vec<Arc<Upstream>> {
    let servers = admin.host.servers();
    servers.iter().flat_map(|server| server.federation.upstreams().to_vec()).collect()
}

/// An upstream in short, with these metrics.
pub(super) fn summary(admin: &Admin, upstream: &Upstream, snapshot: &Snapshot) -> UpstreamSummary {
    let (status, counters) = (upstream.status(), read_counters(snapshot));
    let (status, counters) = (&status, &counters);
    let breaker = upstream.breaker_status();
    let rates = admin.live.samples.upstream_rates(&status.name, counters);
    let counter = counters.upstreams.get(&status.name);
    let (state, note) = match &status.state {
        UpstreamState::Waiting => (UpstreamStateName::Waiting, None),
        UpstreamState::Starting => (UpstreamStateName::Starting, None),
        UpstreamState::Ready => match breaker.filter(|breaker| breaker.state == "open") {
            Some(breaker) => {
                let seconds = breaker.wait.unwrap_or_default().as_secs() + 1;
                let note = format!("the circuit breaker tries again in {seconds} s");
                (UpstreamStateName::Open, Some(note))
            }
            None => (UpstreamStateName::Ready, None),
        },
        UpstreamState::Failed(reason) => {
            // The reason repeats the countdown. The last error does not.
            let error = status.last_error.as_ref().map_or(reason, |error| &error.message);
            (UpstreamStateName::Backoff, Some(error.clone()))
        }
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
            withheld: gauge(snapshot, &table::UPSTREAM_ITEMS, &status.name, Some("withheld")),
        },
        breaker: breaker.map_or("none", |breaker| breaker.state),
        next_start_ms: (state == UpstreamStateName::Backoff)
            .then(|| clock::ms(upstream.next_start().unwrap_or_default())),
        note,
    }
}

async fn list(admin: Arc<Admin>, _: ApiRequest) -> Result<UpstreamList, Problem> {
    Ok(UpstreamList { items: summaries(&admin) })
}

/// The sum of the series of a metric whose first label is this name, and whose last label has this value.
pub(super) fn gauge(
    snapshot: &Snapshot,
    metric: &MetricDef,
    name: &str,
    last: Option<&str>,
) -> usize {
    let family = snapshot.family(metric.name);
    let is_it = |series: &&SeriesSnapshot| {
        series.labels.first().is_some_and(|label| **label == *name)
            && last.is_none_or(|last| series.labels.last().is_some_and(|it| **it == *last))
    };
    let series = family.into_iter().flat_map(|family| &family.series).filter(is_it);
    series.map(|series| number(&series.value)).sum()
}

/// The sum of all series of a metric.
pub(super) fn total(snapshot: &Snapshot, metric: &MetricDef) -> usize {
    let family = snapshot.family(metric.name);
    let series = family.into_iter().flat_map(|family| &family.series);
    series.map(|series| number(&series.value)).sum()
}

fn number(value: &SeriesValue) -> usize {
    match value {
        SeriesValue::Integer(number) => usize::try_from(*number).unwrap_or(0),
        SeriesValue::Float(number) if *number > 0.0 => {
            // Gauges of bytes and processes are far below the limits of both types.
            format!("{number:.0}").parse().unwrap_or(0)
        }
        _ => 0,
    }
}
