//! Why a process is ready, or not.

use std::collections::BTreeMap;
use std::time::SystemTime;

use schemars::JsonSchema;
use serde::Serialize;

use crate::api::upstreams::{self, UpstreamStateName};
use crate::host::Stage;
use crate::{Admin, clock};

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
    /// Whether it answered the last operation.
    up: bool,
    /// Since when it has not answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    down_since: Option<String>,
    /// How many milliseconds the clock of this machine is ahead of that of the store; negative if it is behind. Only for
    /// a store on the network that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_skew_ms: Option<i64>,
}

/// The readiness of the process.
pub(crate) fn of(admin: &Admin) -> Readiness {
    let upstreams = upstreams::summaries(admin);
    let ready = |it: upstreams::UpstreamSummary| (it.name, UpstreamReadiness { state: it.state });
    Readiness {
        stage: admin.host.stage(),
        upstreams: upstreams.into_iter().map(ready).collect(),
        state: state_readiness(admin),
    }
}

/// Whether the state can be used. It is not asked: readiness does not depend on it.
fn state_readiness(admin: &Admin) -> StateReadiness {
    let state = super::state_of(admin);
    let outage = state.outage();
    let down_since =
        outage.and_then(|outage| SystemTime::now().checked_sub(outage)).map(clock::text);
    StateReadiness { up: outage.is_none(), down_since, clock_skew_ms: state.clock_skew_ms() }
}
