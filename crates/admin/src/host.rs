//! What the process tells the admin listener about itself.

use std::path::PathBuf;
use std::time::SystemTime;

use creole::Service;
use creole::internal::replicas::Replicas;
use creole::serve::http::McpEndpoint;
use creole::state::State;
use creole_gateway::federation::Federation;
use creole_gateway::layers::PinLocation;
use schemars::JsonSchema;
use serde::Serialize;

/// The process that runs the servers.
pub trait AdminHost: Send + Sync + 'static {
    /// The servers as they run now.
    fn servers(&self) -> Vec<ServerView>;

    /// The configuration as it is in force.
    fn config(&self) -> ConfigView;

    /// Whether the process serves or shuts down.
    fn stage(&self) -> Stage;

    /// The line of the configuration that has this layer, or this rule of a policy. `None` if it has none.
    fn rule_line(&self, _layer: &str, _rule: Option<&str>) -> Option<usize> {
        None
    }

    /// The replicas that share the state, if it can be shared.
    fn replicas(&self) -> Option<Replicas> {
        None
    }

    /// Where the pinned tools are.
    fn pin_locations(&self) -> Vec<PinLocation> {
        Vec::new()
    }

    /// The files of the audit log, the newest first. Empty if there are none.
    fn audit_files(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Whether a process serves or shuts down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// It serves.
    Running,
    /// Running calls may end, and nothing new starts.
    Draining,
}

/// One server of the process.
#[derive(Clone)]
pub struct ServerView {
    /// Its name.
    pub name: String,
    /// Its display name.
    pub title: Option<String>,
    /// Its version.
    pub version: String,
    /// The path of its endpoint. `None` on stdio.
    pub path: Option<String>,
    /// The name of its dialect.
    pub dialect: String,
    /// The layers around its calls, outermost first: the kind and the name.
    pub layers: Vec<LayerView>,
    /// Handles its calls.
    pub service: Service,
    /// Its upstreams.
    pub federation: Federation,
    /// What outlives its requests.
    pub state: State,
    /// Its HTTP endpoint, which has its sessions.
    pub endpoint: Option<McpEndpoint>,
}

/// One layer of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerView {
    /// Its kind, such as `rate-limit`.
    pub kind: String,
    /// Its name in the configuration.
    pub name: Option<String>,
}

/// The configuration of the process.
#[derive(Clone, Debug, Default)]
pub struct ConfigView {
    /// The file, if there is one.
    pub file: Option<PathBuf>,
    /// The text of the file, without secrets.
    pub text: Option<String>,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
    /// When it was put into force.
    pub loaded: Option<SystemTime>,
    /// The values in force: the path of the key, the value and where it comes from.
    pub effective: Vec<EffectiveValue>,
    /// The last configuration that was refused, unless a later one was accepted.
    pub refused: Option<RefusedConfig>,
    /// How many reloads were accepted.
    pub accepted_reloads: u64,
    /// How many reloads were refused.
    pub refused_reloads: u64,
}

/// A value in force.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectiveValue {
    /// The path of the key, such as `http.listen`.
    pub path: String,
    /// The value, without secrets.
    pub value: serde_json::Value,
    /// Where it comes from: `file`, `preset`, `option` or `default`.
    pub from: String,
}

/// A configuration that was refused.
#[derive(Clone, Debug)]
pub struct RefusedConfig {
    /// When it was refused.
    pub at: SystemTime,
    /// The text of the file, without secrets.
    pub text: Option<String>,
    /// The SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// What cannot change while the process runs.
    pub restart_needed: Vec<String>,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// `error`.
    pub severity: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in the line, in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The column after the last character, if it is in the same line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_column: Option<usize>,
}
