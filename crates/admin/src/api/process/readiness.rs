//! Why a process is ready, or not.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Admin;
use crate::api::upstreams::{self, UpstreamStateName};
use crate::host::Stage;

/// Whether the process is ready, and why.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Readiness {
    /// Whether the process serves or shuts down.
    stage: Stage,
    /// The upstreams by name.
    upstreams: BTreeMap<String, UpstreamReadiness>,
    state: StateReadiness,
}

/// Whether an upstream is ready.
#[derive(Serialize, JsonSchema)]
struct UpstreamReadiness {
    /// Its state.
    state: UpstreamStateName,
}

/// Whether the state can be used.
#[derive(Serialize, JsonSchema)]
struct StateReadiness {
    /// Whether it can be used.
    up: bool,
}

/// The readiness of the process.
pub(crate) fn of(admin: &Admin) -> Readiness {
    let upstreams = upstreams::summaries(admin);
    let ready = |it: upstreams::UpstreamSummary| (it.name, UpstreamReadiness { state: it.state });
    Readiness {
        stage: admin.host.stage(),
        upstreams: upstreams.into_iter().map(ready).collect(),
        state: StateReadiness { up: true },
    }
}
