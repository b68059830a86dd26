//! The log of the process: its last events, as a list and as a stream.

use std::sync::Arc;
use std::time::Duration;

use ::http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use crate::Admin;
use crate::access::Caller;
use crate::api::calls::{StreamEnd, open_stream, signed_out};
use crate::http::events::{EventWriter, KEEP_ALIVE, StreamClosed};
use crate::http::problem::Problem;
use crate::http::reply::Reply;
use crate::live::log_buffer::{LEVELS, LogEvent, LogReader};
use crate::request::ApiRequest;
use crate::routes::{Answer, Route, schema};
use crate::settings::Role;

/// The time between two batches of a stream, and maximum number of events in one.
const BATCH: Duration = Duration::from_millis(50);
const MAX_BATCH: usize = 200;

pub(super) fn routes() -> Vec<Route> {
    let log = Route::new(
        (Method::GET, "/log"),
        Role::Read,
        "The last events of the log, or a stream of them",
        Answer::JsonOrEvents(
            schema::<LogList>,
            &[
                ("open", schema::<LogOpened>),
                ("log", schema::<LogEvent>),
                ("missed", schema::<Missed>),
                ("end", schema::<StreamEnd>),
            ],
        ),
        log,
    );
    vec![log.query(&["level"])]
}

/// The last events.
#[derive(Serialize, JsonSchema)]
struct LogList {
    /// Oldest first.
    items: Vec<LogEvent>,
}

/// The stream is open.
#[derive(Serialize, JsonSchema)]
struct LogOpened {
    /// The level of the least important events that follow.
    level: &'static str,
}

/// Events that were left out.
#[derive(Serialize, JsonSchema)]
struct Missed {
    /// How many.
    missed: u64,
}

async fn log(admin: Arc<Admin>, request: ApiRequest) -> Result<Reply, Problem> {
    let wanted = request.query.text("level").unwrap_or("info").to_uppercase();
    let Some(rank) = LEVELS.iter().position(|level| level.as_str() == wanted) else {
        return Err(Problem::query("level", "error, warn, info, debug or trace"));
    };
    if !request.accepts_events {
        let items = admin.log.last(rank).iter().map(|event| LogEvent::clone(event)).collect();
        return Reply::json(StatusCode::OK, &LogList { items });
    }
    let (writer, pieces) = open_stream(&admin)?;
    let (caller, reader) = (request.caller()?.clone(), admin.log.read(rank));
    tokio::spawn(async move {
        let _ = write_log(&admin, &caller, (reader, LEVELS[rank].as_str()), writer).await;
    });
    Ok(Reply::events(pieces))
}

async fn write_log(
    admin: &Admin,
    caller: &Caller,
    (mut reader, level): (LogReader, &'static str),
    mut writer: EventWriter,
) -> Result<(), StreamClosed> {
    writer.send("open", &LogOpened { level }).await?;
    loop {
        // An open view is a visit.
        admin.live.visit();
        let (events, missed) = reader.next(MAX_BATCH);
        if missed > 0 {
            writer.send("missed", &Missed { missed }).await?;
        }
        for event in &events {
            writer.send("log", &**event).await?;
        }
        let next = async {
            sleep(BATCH).await;
            timeout(KEEP_ALIVE, reader.changed()).await
        };
        let changed = tokio::select! {
            changed = next => changed,
            () = signed_out(caller) => {
                return writer.send("end", &StreamEnd { reason: "signed-out" }).await;
            }
            () = writer.closed() => return Err(StreamClosed),
        };
        if changed.is_err() {
            writer.keep_alive().await?;
        }
    }
}
