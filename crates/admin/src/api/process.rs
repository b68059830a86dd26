//! The state, the log, the audit log and the replicas of the process.

use std::sync::Arc;

use ::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::access::Caller;
use crate::api::calls::{StreamEnd, open_stream, signed_out};
use crate::host::{LogEvent, LogTail, Stage};
use crate::http::events::{EventWriter, KEEP_ALIVE, StreamClosed};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::reply::Reply;
use crate::request::ApiRequest;
use crate::routes::{Answer, Route, schema};
use crate::settings::Role;
use crate::{Admin, clock};

/// The levels of the log, the most severe first.
const LEVELS: [&str; 5] = ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"];

pub(super) fn routes() -> Vec<Route> {
    let log = Route::new(
        (Method::GET, "/log"),
        Role::Read,
        "The last events of the log, or a stream of them",
        Answer::JsonOrEvents(
            schema::<LogList>,
            &[
                ("log", schema::<LogEvent>),
                ("missed", schema::<Missed>),
                ("end", schema::<StreamEnd>),
            ],
        ),
        log,
    );
    vec![
        log.query(&["level"]),
        Route::get("/state", Role::Read, "The state that outlives requests", state),
        Route::get("/replicas", Role::Read, "The processes that share the state", replicas),
    ]
}

/// The last events.
#[derive(Serialize, JsonSchema)]
struct LogList {
    /// Oldest first.
    items: Vec<LogEvent>,
}

/// Events that were left out.
#[derive(Serialize, JsonSchema)]
struct Missed {
    /// How many.
    missed: u64,
}

async fn log(admin: Arc<Admin>, request: ApiRequest) -> Result<Reply, Problem> {
    let wanted = request.query.text("level").unwrap_or("info").to_uppercase();
    let Some(rank) = LEVELS.iter().position(|level| *level == wanted) else {
        return Err(Problem::query("level", "error, warn, info, debug or trace"));
    };
    let tail = admin.host.log().ok_or_else(|| {
        Problem::new(ProblemCode::Unavailable, "The process keeps no events of its log")
            .detail("set `level` of `[log]`, and do not use the format `off`")
    })?;
    if !request.accepts_events {
        let items = tail.last.into_iter().filter(|event| is_shown(event, rank)).collect();
        return Reply::json(StatusCode::OK, &LogList { items });
    }
    let (writer, pieces) = open_stream(&admin)?;
    let caller = request.caller()?.clone();
    tokio::spawn(async move {
        let _ = write_log(&caller, tail, rank, writer).await;
    });
    Ok(Reply::events(pieces))
}

fn is_shown(event: &LogEvent, rank: usize) -> bool {
    LEVELS.iter().position(|level| *level == event.level).is_some_and(|it| it <= rank)
}

async fn write_log(
    caller: &Caller,
    tail: LogTail,
    rank: usize,
    mut writer: EventWriter,
) -> Result<(), StreamClosed> {
    for event in tail.last.iter().filter(|event| is_shown(event, rank)) {
        writer.send("log", event).await?;
    }
    let mut next = tail.next;
    loop {
        let received = tokio::select! {
            received = timeout(KEEP_ALIVE, next.recv()) => received,
            () = signed_out(caller) => {
                return writer.send("end", &StreamEnd { reason: "signed-out" }).await;
            }
            () = writer.closed() => return Err(StreamClosed),
        };
        match received {
            Err(_) => writer.keep_alive().await?,
            Ok(Ok(event)) if is_shown(&event, rank) => writer.send("log", &event).await?,
            Ok(Ok(_)) => {}
            Ok(Err(RecvError::Lagged(missed))) => writer.send("missed", &Missed { missed }).await?,
            Ok(Err(RecvError::Closed)) => {
                return writer.send("end", &StreamEnd { reason: "shutdown" }).await;
            }
        }
    }
}

/// The state.
#[derive(Serialize, JsonSchema)]
struct StateView {
    /// `memory` or `sqlite`.
    backend: &'static str,
    /// Whether it can be used.
    up: bool,
    /// Whether other processes may share it.
    shared: bool,
}

async fn state(admin: Arc<Admin>, _: ApiRequest) -> Result<StateView, Problem> {
    let servers = admin.host.servers();
    let state = servers.first().map(|server| server.state.clone()).unwrap_or_default();
    let up = state.get("admin/probe").await.is_ok();
    let shared = state.is_shared();
    Ok(StateView { backend: if shared { "sqlite" } else { "memory" }, up, shared })
}

/// The processes that share the state.
#[derive(Serialize, JsonSchema)]
struct ReplicaList {
    items: Vec<ReplicaView>,
}

/// A process.
#[derive(Serialize, JsonSchema)]
struct ReplicaView {
    /// Its name.
    name: String,
    /// Its version.
    version: &'static str,
    /// When it started.
    started: String,
    /// Whether it serves or shuts down.
    stage: Stage,
    /// Whether it is the process that answers.
    #[serde(rename = "self")]
    is_self: bool,
}

async fn replicas(admin: Arc<Admin>, _: ApiRequest) -> Result<ReplicaList, Problem> {
    let this = ReplicaView {
        name: admin.replica.clone(),
        version: env!("CARGO_PKG_VERSION"),
        started: clock::text(admin.started.0),
        stage: admin.host.stage(),
        is_self: true,
    };
    Ok(ReplicaList { items: vec![this] })
}
