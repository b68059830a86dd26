//! The last calls, as a list and as a stream, and one call with its steps.

pub(super) mod captures;
pub(crate) mod run;

use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, StatusCode};
use creole::internal::telemetry::{PayloadView, Via};
use creole_proto::revision::{Revision, Rules};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::access::Caller;
use crate::http::events::{EventWriter, KEEP_ALIVE, StreamClosed};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::reply::Reply;
use crate::live::call::{CallSteps, CallSummary};
use crate::live::captures::FrameView;
use crate::request::ApiRequest;
use crate::routes::{Answer, Route, schema};
use crate::settings::Role;
use crate::{Admin, clock};

/// The time between two batches of a stream.
const BATCH: Duration = Duration::from_millis(50);
/// Maximum number of calls in a batch: 2,000 in a second, which is more than a person reads.
const MAX_BATCH: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    let list = Route::new(
        (Method::GET, "/calls"),
        Role::Read,
        "The last calls, or a stream of the new ones",
        Answer::JsonOrEvents(
            schema::<CallList>,
            &[("calls", schema::<CallBatch>), ("end", schema::<StreamEnd>)],
        ),
        list,
    );
    vec![
        list.query(&[
            "live",
            "clients",
            "server",
            "upstream",
            "method",
            "target",
            "principal",
            "outcome",
            "q",
            "since",
            "until",
            "limit",
            "cursor",
        ]),
        Route::get("/calls/{call}", Role::Read, "One call with its steps", show),
    ]
}

/// A page of calls.
#[derive(Serialize, JsonSchema)]
struct CallList {
    /// The calls, the newest first.
    items: Vec<CallSummary>,
    /// Where the list continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Whether calls are recorded.
    recording: bool,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    recording_since: Option<String>,
}

/// New calls.
#[derive(Serialize, JsonSchema)]
struct CallBatch {
    /// The calls, oldest first. A call may occur twice: while it runs and when it has ended.
    items: Vec<CallSummary>,
    /// How many calls were left out, because there were too many.
    missed: u64,
}

/// The end of a stream.
#[derive(Serialize, JsonSchema)]
pub(super) struct StreamEnd {
    /// `signed-out`, `expired` or `shutdown`.
    pub(super) reason: &'static str,
}

/// Which calls are wanted.
struct Filter {
    /// Whether work of the gateway itself is left out.
    only_clients: bool,
    exact: Vec<(&'static str, String)>,
    text: Option<String>,
    since: Option<String>,
    until: Option<String>,
}

impl Filter {
    fn new(request: &ApiRequest) -> Result<Self, Problem> {
        let names = ["server", "upstream", "method", "target", "principal", "outcome"];
        let exact = names
            .into_iter()
            .filter_map(|name| request.query.text(name).map(|value| (name, value.to_owned())));
        let time = |name| -> Result<Option<String>, Problem> {
            Ok(request.query.time(name)?.map(clock::text))
        };
        Ok(Self {
            only_clients: request.query.is_set("clients"),
            exact: exact.collect(),
            text: request.query.text("q").map(str::to_lowercase),
            since: time("since")?,
            until: time("until")?,
        })
    }

    fn matches(&self, call: &CallSummary) -> bool {
        let value = |name: &str| match name {
            "server" => call.server.as_str(),
            "upstream" => call.upstream.as_deref().unwrap_or_default(),
            "method" => call.method.as_str(),
            "target" => call.target.as_str(),
            "principal" => call.principal.as_str(),
            _ => call.outcome.unwrap_or(call.state),
        };
        let has_text = |text: &String| {
            [&call.method, &call.target, &call.principal, &call.server, &call.id]
                .iter()
                .any(|value| value.to_lowercase().contains(text))
        };
        // Times of the same form compare as texts.
        (!self.only_clients || ![Via::Gateway, Via::Replica].map(Via::name).contains(&call.via))
            && self.exact.iter().all(|(name, wanted)| value(name) == wanted)
            && self.text.as_ref().is_none_or(has_text)
            && self.since.as_ref().is_none_or(|since| call.started >= *since)
            && self.until.as_ref().is_none_or(|until| call.started < *until)
    }
}

async fn list(admin: Arc<Admin>, request: ApiRequest) -> Result<Reply, Problem> {
    let filter = Filter::new(&request)?;
    if request.query.is_set("live") && request.accepts_events {
        return stream(&admin, request.caller()?.clone(), filter);
    }
    let (skip, limit) = (request.query.offset()?, request.query.limit()?);
    let (mut items, has_more) = admin.live.ring().find(|call| filter.matches(call), skip, limit);
    items.iter_mut().for_each(|call| mark_payloads(&admin, call));
    let since = admin.live.recording_since();
    let page = CallList {
        next: has_more.then(|| (skip + items.len()).to_string()),
        items,
        recording: since.is_some(),
        recording_since: since.map(clock::text),
    };
    Reply::json(StatusCode::OK, &page)
}

fn mark_payloads(admin: &Admin, call: &mut CallSummary) {
    let id = u128::from_str_radix(&call.id, 16);
    call.has_payloads = id.is_ok_and(|id| admin.live.captures.has(id));
}

fn stream(admin: &Arc<Admin>, caller: Caller, filter: Filter) -> Result<Reply, Problem> {
    let (writer, pieces) = open_stream(admin)?;
    let admin = Arc::clone(admin);
    tokio::spawn(async move {
        let _ = write_calls(&admin, &caller, &filter, writer).await;
    });
    Ok(Reply::events(pieces))
}

/// A place for a stream, if one is free.
pub(super) fn open_stream(
    admin: &Admin,
) -> Result<(EventWriter, tokio::sync::mpsc::Receiver<bytes::Bytes>), Problem> {
    let place = Arc::clone(&admin.streams).try_acquire_owned().map_err(|_| {
        Problem::new(ProblemCode::TooManyStreams, "Too many streams are open")
            .detail("close another view first")
            .retry_after(1)
    })?;
    Ok(EventWriter::new(place))
}

/// Resolves when the session of a caller has ended.
pub(super) async fn signed_out(caller: &Caller) {
    match &caller.session {
        Some(session) => session.ended().await,
        None => std::future::pending().await,
    }
}

async fn write_calls(
    admin: &Admin,
    caller: &Caller,
    filter: &Filter,
    mut writer: EventWriter,
) -> Result<(), StreamClosed> {
    let mut position = admin.live.ring().position();
    let mut ticks = interval(BATCH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first event tells the client that the stream is open.
    writer.send("calls", &CallBatch { items: Vec::new(), missed: 0 }).await?;
    let mut last_write = Instant::now();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = signed_out(caller) => {
                return writer.send("end", &StreamEnd { reason: "signed-out" }).await;
            }
            () = writer.closed() => return Err(StreamClosed),
        }
        // An open view is a visit.
        admin.live.visit();
        let mut new = admin.live.ring().after(&mut position, MAX_BATCH);
        new.calls.retain(|call| filter.matches(call));
        new.calls.iter_mut().for_each(|call| mark_payloads(admin, call));
        if !new.calls.is_empty() || new.missed > 0 {
            writer.send("calls", &CallBatch { items: new.calls, missed: new.missed }).await?;
            last_write = Instant::now();
        } else if last_write.elapsed() >= KEEP_ALIVE {
            writer.keep_alive().await?;
            last_write = Instant::now();
        }
    }
}

/// One call.
#[derive(Serialize, JsonSchema)]
struct CallDetail {
    #[serde(flatten)]
    call: CallSteps,
    /// Its messages, if they were captured and the caller may see them.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<Vec<FrameView>>,
    /// `none`: no message was captured. `captured`: they are in `frames`. `forbidden`: the caller lacks a role.
    payloads: &'static str,
}

/// Records who looked at the payloads of a call: in the log, and in the audit logs that have the call.
fn record_view(admin: &Admin, request: &ApiRequest, caller: &Caller, id: u128, call: &CallSteps) {
    let summary = &call.summary;
    tracing::info!(target: "creole::admin", by = caller.name(), call = summary.id, "the payloads of a call were looked at");
    let upstreams: Vec<&str> = call.upstreams().collect();
    admin.telemetry.report_payload_view(&PayloadView {
        principal: &caller.principal,
        remote: request.peer,
        call: id,
        server: &summary.server,
        upstreams: &upstreams,
        rules: Revision::from_name(&summary.revision).map_or(Rules::CANONICAL, Revision::rules),
        target: &summary.target,
    });
}

async fn show(admin: Arc<Admin>, request: ApiRequest) -> Result<CallDetail, Problem> {
    let name = request.name(0);
    let unknown = || {
        Problem::not_found("call", name).detail("it is not among the last calls of this process")
    };
    let id = u128::from_str_radix(name, 16).map_err(|_| unknown())?;
    let mut call = admin.live.ring().call(id).ok_or_else(unknown)?;
    mark_payloads(&admin, &mut call.summary);
    let caller = request.caller()?;
    let may_see = Role::Operate.is_among(&caller.roles);
    let view = may_see.then(|| admin.live.captures.view(id, caller.name())).flatten();
    if let Some((_, true)) = &view {
        record_view(&admin, &request, caller, id, &call);
    }
    let frames = view.map(|(frames, _)| frames);
    let payloads = match (call.summary.has_payloads, may_see) {
        (false, _) => "none",
        (true, true) => "captured",
        (true, false) => "forbidden",
    };
    Ok(CallDetail { call, frames, payloads })
}
