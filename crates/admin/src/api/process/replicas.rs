//! The replicas of the process.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use creole::internal::replicas::OtherReplica;
use schemars::JsonSchema;
use serde::Serialize;

use crate::host::Stage;
use crate::http::problem::Problem;
use crate::request::ApiRequest;
use crate::{Admin, clock};

/// How long replicas may have different configurations: a new one reaches them one after the other.
const ROLLOUT: Duration = Duration::from_secs(5 * 60);

/// The processes that share the state.
#[derive(Serialize, JsonSchema)]
pub(super) struct ReplicaList {
    /// The process that answers first, then the others, the oldest first.
    items: Vec<ReplicaView>,
}

/// A process.
#[derive(Serialize, JsonSchema)]
struct ReplicaView {
    /// Its name.
    name: String,
    /// Its version.
    version: String,
    /// When it started.
    started: String,
    /// The SHA-256 of its configuration file, in hexadecimal digits. Empty without a file.
    config: String,
    /// Whether it serves or shuts down. Only the process that answers knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<Stage>,
    /// Whether it is the process that answers.
    #[serde(rename = "self")]
    is_self: bool,
}

pub(super) async fn list(admin: Arc<Admin>, _: ApiRequest) -> Result<ReplicaList, Problem> {
    let replicas = admin.host.replicas();
    let name = replicas.as_ref().map_or(&*admin.replica, |replicas| replicas.name());
    let this = ReplicaView {
        name: name.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock::text(admin.started.0),
        config: admin.host.config().digest,
        stage: Some(admin.host.stage()),
        is_self: true,
    };
    let others = replicas.map(|replicas| replicas.others()).unwrap_or_default();
    Ok(ReplicaList { items: std::iter::once(this).chain(others.into_iter().map(view)).collect() })
}

fn view(other: OtherReplica) -> ReplicaView {
    let OtherReplica { name, description, .. } = other;
    ReplicaView {
        name,
        version: description.version,
        started: clock::text(UNIX_EPOCH + Duration::from_secs(description.started)),
        config: description.config,
        stage: None,
        is_self: false,
    }
}

/// The names of the replicas that have had another configuration than this process for longer than an update takes.
pub(crate) fn with_other_config(admin: &Admin) -> Vec<String> {
    let Some(replicas) = admin.host.replicas() else { return Vec::new() };
    let config = admin.host.config();
    let is_new =
        config.loaded.and_then(|loaded| loaded.elapsed().ok()).is_some_and(|age| age < ROLLOUT);
    if is_new {
        return Vec::new();
    }
    let differs = |other: &OtherReplica| {
        other.description.config != config.digest && other.config_since.elapsed() >= ROLLOUT
    };
    replicas.others().into_iter().filter(differs).map(|other| other.name).collect()
}
