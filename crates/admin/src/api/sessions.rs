//! Sessions of clients and parked calls.

use std::sync::Arc;
use std::time::SystemTime;

use ::http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::http::problem::Problem;
use crate::live::call::Program;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};

pub(super) fn routes() -> Vec<Route> {
    let page = &["limit", "cursor"];
    vec![
        Route::get("/sessions", Role::Read, "The sessions of clients", list).query(page),
        Route::act(Method::DELETE, "/sessions/{session}", Role::Operate, "Ends a session", end),
        Route::get("/parked", Role::Read, "Calls that wait for input", parked),
        Route::act(
            Method::DELETE,
            "/parked/{call}",
            Role::Operate,
            "Ends a parked call",
            end_parked,
        ),
    ]
}

/// A page of sessions.
#[derive(Serialize, JsonSchema)]
struct SessionList {
    items: Vec<SessionView>,
    /// Where the list continues.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A session of a client.
#[derive(Serialize, JsonSchema)]
struct SessionView {
    /// The start of the digest of its id.
    id: String,
    /// The server.
    server: String,
    /// Who opened it.
    principal: String,
    /// Its revision.
    revision: &'static str,
    /// What the client says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Program>,
    /// `http`.
    transport: &'static str,
    /// When it was opened.
    started: String,
    /// How long it is open.
    age_ms: f64,
    /// How long it was not used.
    idle_ms: f64,
    /// How many streams are read.
    streams: usize,
    /// How many calls run.
    active: usize,
}

async fn list(admin: Arc<Admin>, request: ApiRequest) -> Result<SessionList, Problem> {
    let (skip, limit) = (request.query.offset()?, request.query.limit()?);
    let mut all = Vec::new();
    for server in admin.host.servers() {
        let sessions = server.endpoint.iter().flat_map(|endpoint| endpoint.inspect_sessions());
        all.extend(sessions.map(|session| (server.name.clone(), session)));
    }
    all.sort_by(|(_, one), (_, other)| one.age.cmp(&other.age).then(one.digest.cmp(&other.digest)));
    let has_more = all.len() > skip.saturating_add(limit);
    let now = SystemTime::now();
    let view =
        |(server, session): (String, creole::internal::http::InspectedSession)| SessionView {
            id: session.digest,
            server,
            principal: session.principal,
            revision: session.revision,
            client: session.client.map(|it| Program { name: it.name, version: it.version }),
            transport: "http",
            started: clock::text(now.checked_sub(session.age).unwrap_or(now)),
            age_ms: clock::ms(session.age),
            idle_ms: clock::ms(session.idle),
            streams: session.streams,
            active: session.calls,
        };
    Ok(SessionList {
        items: all.into_iter().skip(skip).take(limit).map(view).collect(),
        next: has_more.then(|| (skip + limit).to_string()),
    })
}

async fn end(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    for endpoint in admin.host.servers().iter().filter_map(|server| server.endpoint.clone()) {
        if endpoint.end_session(request.name(0)).await {
            let by = request.caller()?.name();
            tracing::info!(target: "creole::admin", by, session = request.name(0), "an operator ended a session");
            return Ok(());
        }
    }
    Err(Problem::not_found("session", request.name(0)))
}

/// Parked calls.
#[derive(Serialize, JsonSchema)]
struct ParkedList {
    items: Vec<ParkedView>,
}

/// A call of an upstream that waits for the input of its caller.
#[derive(Serialize, JsonSchema)]
struct ParkedView {
    /// The start of the digest of its id.
    id: String,
    /// The upstream.
    upstream: String,
    /// Who called.
    principal: String,
}

async fn parked(admin: Arc<Admin>, _: ApiRequest) -> Result<ParkedList, Problem> {
    let mut items = Vec::new();
    for server in admin.host.servers() {
        for upstream in server.federation.upstreams() {
            let view = |(id, principal)| ParkedView {
                id,
                upstream: upstream.name().to_owned(),
                principal,
            };
            items.extend(upstream.parked_calls().into_iter().map(view));
        }
    }
    Ok(ParkedList { items })
}

async fn end_parked(admin: Arc<Admin>, request: ApiRequest) -> Result<(), Problem> {
    let servers = admin.host.servers();
    let mut upstreams = servers.iter().flat_map(|server| server.federation.upstreams());
    match upstreams.any(|upstream| upstream.end_parked_call(request.name(0))) {
        true => Ok(()),
        false => Err(Problem::not_found("parked call", request.name(0))),
    }
}
