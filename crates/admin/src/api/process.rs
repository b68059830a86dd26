//! The state and the replicas of the process.

pub(crate) mod metrics;
pub(crate) mod readiness;
pub(crate) mod replicas;

use std::sync::Arc;

use creole::state::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::Admin;
use crate::http::problem::Problem;
use crate::request::ApiRequest;
use crate::routes::Route;
use crate::settings::Role;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/state", Role::Read, "The state that outlives requests", state),
        Route::get("/replicas", Role::Read, "The processes that share the state", replicas::list),
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
