//! What the user wrote: the configuration file as types, each word with its place.
//!
//! Nothing is decided here. The types say which keys there are and of which kind their values are;
//! the documentation of each field is also its description in the JSON Schema that editors use.

pub mod auth;
pub mod chain;
pub mod database;
pub mod dialect;
pub mod enums;
pub mod files;
pub mod http;
pub mod openapi;
pub mod script;
pub mod tools;
pub mod upstream;
pub mod wordpress;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::de::{DeTable, Deserializer};

use crate::syntax::environment::Lookup;
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::syntax::{disabled, environment, layer_kinds, toml_errors};
use auth::AuthTable;
use chain::LayerTable;
use database::{DatabaseTable, TasksTable};
use dialect::DialectChoice;
use enums::{LogFormat, LogLevel};
use files::{FolderTable, PromptsTable, ResourceTable};
use http::HttpTable;
use openapi::OpenApiTable;
use tools::ToolTable;
use upstream::UpstreamTable;
use wordpress::WordPressTable;

/// A configuration file: one file describes one process.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server that this process runs. Either this or `servers`. Default: a server with the name `creole`, if the
    /// file describes something that it can offer.
    pub server: Option<Spanned<ServerTable>>,
    /// Several servers that this process runs, each at a path of its own. Either this or `server`.
    pub servers: Option<Spanned<Vec<Spanned<ServerTable>>>>,
    /// The servers behind it, by names of your own. What they have, the server has too.
    pub upstreams: Option<Entries<UpstreamTable>>,
    /// How the server is reached over HTTP.
    pub http: Option<HttpTable>,
    /// Whom the server lets in over HTTP. Default: everybody who reaches it.
    pub auth: Option<Spanned<AuthTable>>,
    /// Where tasks and sessions are kept, and the key of what passes through clients, such as cursors. Default: in
    /// memory, as long as the process lives.
    pub state: Option<StateTable>,
    /// What is logged, and how. The log goes to stderr.
    pub log: Option<LogTable>,
    /// Where the pack `skills` finds its skills.
    pub skills: Option<Spanned<SkillsTable>>,
    /// Where the pack `tasks` keeps its tasks.
    pub tasks: Option<Spanned<TasksTable>>,
    /// The WordPress site that the packs `buddyboss-platform` and `wordpress` work on.
    pub wordpress: Option<Spanned<WordPressTable>>,
    /// Databases that are read, by names of your own.
    pub databases: Option<Entries<DatabaseTable>>,
    /// Tools without code, by the names that clients call them by.
    pub tools: Option<Entries<ToolTable>>,
    /// Folders whose files are resources, by names of your own.
    pub folders: Option<Entries<FolderTable>>,
    /// Folders of Markdown files that are prompts, by names of your own.
    pub prompts: Option<Entries<PromptsTable>>,
    /// Single resources, by names of your own.
    pub resources: Option<Entries<ResourceTable>>,
    /// Services that OpenAPI documents describe, by names of your own. Their operations become tools.
    pub openapi: Option<Entries<OpenApiTable>>,
}

/// Where tasks and sessions are kept.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StateTable {
    /// The SQLite file that they are kept in, so that they outlive the process. It is made if it is not there;
    /// several processes of one machine may share it, and a caller may come back to any of them. A relative path
    /// begins at the folder of this file.
    pub file: Option<Spanned<String>>,
    /// A file with the key of what passes through clients, in 64 hexadecimal digits, and on a second line the key
    /// before it, if there is one. When it changes, what was sealed with the key before still opens. The
    /// clocks of machines that share it may be five minutes apart. Default: a key of the process's own, or the one in
    /// `file`.
    pub keys_file: Option<Spanned<String>>,
}

/// One MCP server: who it is, how it speaks and what it offers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    /// The name that clients are told. Default: `creole`.
    pub name: Option<Spanned<String>>,
    /// A name for people, where clients show one.
    pub title: Option<Spanned<String>>,
    /// The version of the server that clients are told. Default: the version of Creole.
    pub version: Option<Spanned<String>>,
    /// What a model should know before it uses the server.
    pub instructions: Option<String>,
    /// How the server speaks: the name of a dialect, or a table of your own. Default: `spec`.
    pub dialect: Option<DialectChoice>,
    /// The packs of tools, resources and prompts that the server offers.
    pub packs: Option<Vec<Spanned<String>>>,
    /// How many entries one page of a list has. Default: 100.
    pub page_size: Option<Ranged<1, 1000>>,
    /// How long and how many.
    pub limits: Option<LimitsTable>,
    /// The path of its endpoint over HTTP. Default: that of `[http]` for the first server, and `/NAME/mcp` for
    /// others.
    pub path: Option<Spanned<String>>,
    /// Which of the servers behind it has, by their names. Default: all.
    pub upstreams: Option<Vec<Spanned<String>>>,
    /// Which of the tools of `[tools]` it has, by their names. Default: all.
    pub tools: Option<Vec<Spanned<String>>>,
    /// Which of the folders of `[folders]` it has, by their names. Default: all.
    pub folders: Option<Vec<Spanned<String>>>,
    /// Which of the folders of `[prompts]` it has, by their names. Default: all.
    pub prompts: Option<Vec<Spanned<String>>>,
    /// Which of the resources of `[resources]` it has, by their names. Default: all.
    pub resources: Option<Vec<Spanned<String>>>,
    /// Which of the databases of `[databases]` it has the tables of, by their names. Default: all.
    pub databases: Option<Vec<Spanned<String>>>,
    /// Which of the services of `[openapi]` it has, by their names. Default: all.
    pub openapi: Option<Vec<Spanned<String>>>,
    /// Layers around its calls, the first one outermost.
    pub chain: Option<Vec<Spanned<LayerTable>>>,
}

/// How long and how many.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsTable {
    /// How long a call may be silent, in seconds; progress starts the time anew. Default: 60.
    pub call_timeout_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// How long a call may take in all, in seconds. Default: 600.
    pub call_timeout_max_seconds: Option<Spanned<Ranged<1, 86_400>>>,
    /// How many calls may run at the same time. Default: 1000.
    pub calls_in_flight: Option<Ranged<1, 100_000>>,
    /// How long a question to the client may stay open, in seconds. Default: 600.
    pub question_timeout_seconds: Option<Ranged<1, 3600>>,
    /// How long the first lists wait for servers behind that are slow to start, in seconds. A client that can be told
    /// of the rest later waits a quarter of it. Default: 2.
    pub list_wait_seconds: Option<Ranged<0, 60>>,
    /// How many tasks, calls that go on after their answer, are kept at the same time. Default: 1000.
    pub tasks: Option<Ranged<1, 1_000_000>>,
    /// How many tasks of one caller are kept, those that are over included. Default: 100.
    pub tasks_per_caller: Option<Ranged<1, 1_000_000>>,
    /// How long a task is kept after its beginning when the client does not say, in seconds. Default: 900.
    pub task_lifetime_seconds: Option<Spanned<Ranged<1, 31_536_000>>>,
    /// How long a client may have a task kept, in seconds. Default: 86400.
    pub task_lifetime_max_seconds: Option<Spanned<Ranged<1, 31_536_000>>>,
}

/// What is logged, and how.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogTable {
    /// How an event is written. Default: `text`.
    pub format: Option<LogFormat>,
    /// The least important events that are still written. Default: `warn`, or `info` when the dialect
    /// has telemetry or arguments and results are logged.
    pub level: Option<LogLevel>,
    /// Whether arguments and results are logged too. They may hold secrets. Default: false.
    pub payloads: Option<bool>,
}

/// Where the pack `skills` finds its skills.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillsTable {
    /// The folder that holds a folder for each skill, as seen from the folder of this file. Default: `skills`.
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

    /// Whether the file describes something that a server can offer.
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
