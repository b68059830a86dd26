//! The configuration file as types, each value with its position in the file.
//!
//! The types define the keys and the types of their values. The documentation of a field is also its description in the
//! JSON Schema and in docs/configuration.md.

pub mod admin;
pub mod audit;
pub mod auth_oauth;
pub mod chain;
pub mod database;
pub mod dialect;
pub mod enums;
pub mod files;
pub mod http;
pub mod issuers;
mod key_schemas;
mod layer_kinds;
pub mod oauth;
pub mod openapi;
pub mod policy;
pub mod state;
pub mod telemetry;
pub mod tools;
pub mod upstream;
pub mod wordpress;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

use crate::syntax::environment::Lookup;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::syntax::{disabled, environment, toml_errors};
use admin::AdminTable;
use auth_oauth::ServerAuthTable;
use chain::LayerTable;
use database::{DatabaseTable, TasksTable};
use dialect::DialectChoice;
use enums::{LogFormat, LogLevel};
use files::{FolderTable, PromptsTable, ResourceTable};
use http::{AuthTable, HttpTable};
use openapi::OpenApiTable;
use policy::PolicyTable;
use state::StateTable;
use telemetry::TelemetryTable;
use tools::ToolTable;
use upstream::UpstreamTable;
use wordpress::WordPressTable;

/// A configuration file. One file describes one process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server that this process runs. Use either this or `servers`. Default: a server with the name `creole`, if
    /// the file configures items that it can offer.
    pub server: Option<Spanned<ServerTable>>,
    /// Several servers in this process, each at its own path. Use either this or `server`.
    pub servers: Option<Spanned<Vec<Spanned<ServerTable>>>>,
    /// The servers that the gateway forwards to (upstreams). The key is a name of your choice. The server offers the
    /// items of its upstreams.
    pub upstreams: Option<Entries<UpstreamTable>>,
    /// The HTTP listener.
    pub http: Option<HttpTable>,
    /// Authentication of HTTP clients. Default: no authentication.
    pub auth: Option<Spanned<AuthTable>>,
    /// The admin listener: metrics, an API and a console for operators. Default: none.
    pub admin: Option<AdminTable>,
    /// Who may call what. Default: every client that is admitted may use everything.
    pub policy: Option<PolicyTable>,
    /// The storage of tasks and sessions, and the key that encrypts the data that clients hold for the server, such as
    /// cursors. Default: in memory, until the process ends.
    pub state: Option<StateTable>,
    /// The log, which is written to stderr.
    pub log: Option<LogTable>,
    /// The export of traces, metrics and logs to a collector of OpenTelemetry.
    pub telemetry: Option<TelemetryTable>,
    /// The folder of the pack `skills`.
    pub skills: Option<Spanned<SkillsTable>>,
    /// The database of the pack `tasks`.
    pub tasks: Option<Spanned<TasksTable>>,
    /// The WordPress site of the packs `buddyboss-platform` and `wordpress`.
    pub wordpress: Option<Spanned<WordPressTable>>,
    /// Databases that tools and resources read. The key is a name of your choice.
    pub databases: Option<Entries<DatabaseTable>>,
    /// Tools that are defined in this file. The key is the name that clients call.
    pub tools: Option<Entries<ToolTable>>,
    /// Folders whose files are resources. The key is a name of your choice.
    pub folders: Option<Entries<FolderTable>>,
    /// Folders of Markdown files that are prompts. The key is a name of your choice.
    pub prompts: Option<Entries<PromptsTable>>,
    /// Single resources. The key is a name of your choice.
    pub resources: Option<Entries<ResourceTable>>,
    /// Services with an OpenAPI document. Their operations become tools. The key is a name of your choice.
    pub openapi: Option<Entries<OpenApiTable>>,
}

/// One MCP server: its identity, its dialect and its items.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    /// The name that the server reports to clients. Default: `creole`.
    pub name: Option<Spanned<String>>,
    /// The display name, for clients that show one.
    pub title: Option<Spanned<String>>,
    /// The version that the server reports to clients. Default: the version of Creole.
    pub version: Option<Spanned<String>>,
    /// Instructions for the model that uses the server.
    pub instructions: Option<String>,
    /// The dialect of the server: the name of a built-in dialect, or a table. Default: `spec`.
    pub dialect: Option<DialectChoice>,
    /// The built-in packs of tools, resources and prompts that the server offers.
    pub packs: Option<Vec<Spanned<String>>>,
    /// The number of entries on one page of a list. Default: 100.
    pub page_size: Option<Ranged<1, 1000>>,
    /// Timeouts and limits.
    pub limits: Option<LimitsTable>,
    /// The path of the server's HTTP endpoint. Default: the `path` of `[http]` for the first server, `/NAME/mcp` for
    /// the others.
    pub path: Option<Spanned<String>>,
    /// The requirements for access tokens at the path of this server. Default: those of `[auth]`.
    pub auth: Option<Spanned<ServerAuthTable>>,
    /// The names of the upstreams that this server offers. Default: all.
    pub upstreams: Option<Vec<Spanned<String>>>,
    /// The names of the tools in `[tools]` that this server offers. Default: all.
    pub tools: Option<Vec<Spanned<String>>>,
    /// The names of the folders in `[folders]` that this server offers. Default: all.
    pub folders: Option<Vec<Spanned<String>>>,
    /// The names of the folders in `[prompts]` that this server offers. Default: all.
    pub prompts: Option<Vec<Spanned<String>>>,
    /// The names of the resources in `[resources]` that this server offers. Default: all.
    pub resources: Option<Vec<Spanned<String>>>,
    /// The names of the databases in `[databases]` whose tables this server offers. Default: all.
    pub databases: Option<Vec<Spanned<String>>>,
    /// The names of the services in `[openapi]` that this server offers. Default: all.
    pub openapi: Option<Vec<Spanned<String>>>,
    /// The layers around the calls of this server. The first layer is the outermost.
    pub chain: Option<Vec<Spanned<LayerTable>>>,
}

/// Timeouts and limits of a server.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsTable {
    /// The maximum time that a call may run without progress, in seconds. A progress notification restarts the time.
    /// The call then fails with a `timeout` error. Default: 60.
    pub call_timeout_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// The maximum total time of a call, in seconds. The call then fails with a `timeout` error. Default: 600.
    pub call_timeout_max_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// The maximum number of calls that run at the same time. Further calls fail with a `busy` error. Default: 1000.
    pub calls_in_flight: Option<Ranged<1, 100_000>>,
    /// The maximum time that an input request to the client may stay unanswered, in seconds. The input request then
    /// fails. Default: 600.
    pub input_timeout_seconds: Option<Ranged<1, 3600>>,
    /// The maximum time that the first list waits for upstreams that are slow to start, in seconds. A client that can
    /// be notified of later changes waits a quarter of this time. Default: 2.
    pub list_wait_seconds: Option<Ranged<0, 60>>,
    /// The maximum number of tasks that are kept at the same time. A task is a call that continues after its response.
    /// Further tasks are refused with a `busy` error. Default: 1000.
    pub max_tasks: Option<Ranged<1, 1_000_000>>,
    /// The maximum number of tasks of one caller, including finished tasks that are still kept. Further tasks are
    /// refused with a `busy` error. Default: 100.
    pub max_tasks_per_principal: Option<Ranged<1, 1_000_000>>,
    /// The time that a task is kept after its creation, in seconds, if the client does not request a time. Default:
    /// 900.
    pub task_lifetime_seconds: Option<Spanned<Ranged<1, 31_536_000>>>,
    /// The maximum time that a client may request for a task, in seconds. A longer request is lowered to it. Default:
    /// 86400.
    pub task_lifetime_max_seconds: Option<Spanned<Ranged<1, 31_536_000>>>,
}

/// The log on stderr: its format, its level and its contents.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogTable {
    /// The format of a log event. Default: `text`.
    pub format: Option<LogFormat>,
    /// The lowest severity that is logged. Default: `warn`, or `info` if the dialect has telemetry or `payloads` is
    /// true.
    pub level: Option<LogLevel>,
    /// Whether arguments and results are logged. They may contain secrets. Default: false.
    pub payloads: Option<bool>,
}

/// The folder of the pack `skills`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillsTable {
    /// The folder that contains one folder per skill. A relative path is resolved against the folder of this file.
    /// Default: `skills`.
    pub folder: Option<Spanned<String>>,
}

impl Config {
    /// Reads the text of a configuration file.
    pub(crate) fn parse(text: &str, lookup: Lookup<'_>) -> Result<Self, ConfigProblem> {
        let mut document =
            DeTable::parse(text).map_err(|error| toml_errors::syntax_error(&error))?;
        disabled::remove_disabled(document.get_mut(), lookup);
        environment::expand(document.get_mut(), lookup)?;
        layer_kinds::tag_layer_kinds(document.get_mut())?;
        let mut config = Self::deserialize(Deserializer::from(document))
            .map_err(|error| toml_errors::schema_error(&error, text))?;
        if config.server.is_none() && config.servers.is_none() && config.has_items() {
            config.server = Some(Spanned { value: ServerTable::default(), span: 0..0 });
        }
        Ok(config)
    }

    /// Whether the file configures items that a server can offer.
    fn has_items(&self) -> bool {
        self.upstreams.is_some()
            || self.tools.is_some()
            || self.folders.is_some()
            || self.prompts.is_some()
            || self.resources.is_some()
            || self.databases.is_some()
            || self.openapi.is_some()
    }
}
