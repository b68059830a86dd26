//! The state and the replicas of the process.

pub(crate) mod metrics;
pub(crate) mod readiness;

use std::sync::Arc;

use creole::state::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::host::Stage;
use crate::http::problem::Problem;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;
use crate::{Admin, clock};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/state", Role::Read, "The state that outlives requests", state),
        Route::get("/replicas", Role::Read, "The processes that share the state", replicas),
    ]
}

/// The state.
#[derive(Serialize, JsonSchema)]
struct StateView {
    /// `memory`, `sqlite`, `valkey` or `postgres`.
    backend: &'static str,
    /// Whether it can be used.
    up: bool,
    /// Whether other processes may share it.
    shared: bool,
}

async fn state(admin: Arc<Admin>, _: ApiRequest) -> Result<StateView, Problem> {
    let state = state_of(&admin);
    let up = state.get("admin/probe").await.is_ok();
    Ok(StateView { backend: state.backend_name(), up, shared: state.is_shared() })
}

/// The state of the process.
pub(super) fn state_of(admin: &Admin) -> State {
    let servers = admin.host.servers();
    servers.first().map(|server| server.state.clone()).unwrap_or_default()
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
