//! The plan: a configuration that is checked, resolved and immutable.

pub mod admin;
pub mod audit;
pub mod auth;
mod chain;
mod dialect;
mod errors;
pub mod http;
pub mod issuers;
pub(crate) mod items;
pub mod layer;
pub mod layer_environment;
mod limits;
pub mod oauth;
pub mod pins;
mod plain_names;
pub mod policy;
pub mod redaction;
mod restart;
mod servers;
pub mod state;
pub mod telemetry;
pub mod upstream;

use std::path::{Path, PathBuf};
use std::time::Duration;

use creole::TaskLimits;
use creole_policy::PolicySettings;
use creole_proto::dialect::Dialect;
use creole_tools::database::DatabaseAddress;
use creole_tools::recipe::Recipe;

use admin::AdminPlan;
use auth::AuthPlan;
use items::{database, files, openapi, skills, tools, wordpress};
use layer::LayerPlan;
use oauth::ServerAuthPlan;
use state::StatePlan;
use telemetry::TelemetryPlan;
use upstream::UpstreamPlan;

use crate::source::ConfigSource;
use crate::syntax::environment::Lookup;
use crate::syntax::error::{ConfigError, ConfigProblem};
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::Spanned;
use crate::tables::enums::{LogFormat, LogLevel};
use crate::tables::{Config, LogTable, ServerTable};
use crate::wordpress::SiteSettings;

pub use http::HttpPlan;
pub use restart::ClientScope;

/// The default name of a server.
const DEFAULT_NAME: &str = "creole";
/// The default version of a server.
const DEFAULT_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The maximum length of a name, title or version, in characters.
const MAX_LABEL: usize = 200;

/// The plan of one process.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The server, or the first of several.
    pub server: ServerPlan,
    /// The other servers, if there are several.
    pub other_servers: Vec<ServerPlan>,
    /// The upstreams.
    pub upstreams: Vec<UpstreamPlan>,
    /// The HTTP listener, if there is one.
    pub http: Option<HttpPlan>,
    /// Authentication over HTTP. Without it, every client is admitted.
    pub auth: Option<AuthPlan>,
    /// The admin listener, if there is one.
    pub admin: Option<AdminPlan>,
    /// Who may call what. Without it, every admitted client may use everything.
    pub policy: Option<PolicySettings>,
    /// The storage of tasks and sessions. Without it, they live as long as the process.
    pub state: Option<StatePlan>,
    /// The file with the seal keys for values that clients hold.
    pub seal_keys: Option<PathBuf>,
    /// The log.
    pub log: LogPlan,
    /// The export of traces, metrics and logs.
    pub telemetry: TelemetryPlan,
    /// The folder of the pack `skills`. It is set if the pack is offered.
    pub skills: Option<PathBuf>,
    /// The database of the pack `tasks`, if it is configured.
    pub tasks: Option<DatabaseAddress>,
    /// The WordPress site that packs work on.
    pub wordpress: Option<SiteSettings>,
    /// The configured items, in the order of the file. Each server may choose among them.
    pub recipes: Vec<Recipe>,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    /// The name that is announced to clients.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The version that is announced to clients.
    pub version: String,
    /// The instructions for the model.
    pub instructions: Option<String>,
    /// The dialect, checked for contradictions.
    pub dialect: Dialect,
    /// The packs that it offers, in the order of the file. Each is known and occurs once.
    pub packs: Vec<String>,
    /// How many entries one page of a list has.
    pub page_size: usize,
    /// Timeouts and limits of calls.
    pub limits: LimitsPlan,
    /// The path of its HTTP endpoint. Default: the path of `[http]`.
    pub path: Option<String>,
    /// The requirements for access tokens at its path.
    pub auth: ServerAuthPlan,
    /// The upstreams that it uses. Default: all.
    pub upstreams: Option<Vec<String>>,
    /// The configured tools that it offers. Default: all.
    pub tools: Option<Vec<String>>,
    /// The folders that it offers. Default: all.
    pub folders: Option<Vec<String>>,
    /// The folders of prompts that it offers. Default: all.
    pub prompts: Option<Vec<String>>,
    /// The configured resources that it offers. Default: all.
    pub resources: Option<Vec<String>>,
    /// The databases whose tables it offers. Default: all.
    pub databases: Option<Vec<String>>,
    /// The OpenAPI services that it offers. Default: all.
    pub openapi: Option<Vec<String>>,
    /// Layers around its calls, outermost first.
    pub chain: Vec<LayerPlan>,
}

/// Timeouts and limits of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsPlan {
    /// The maximum time without progress of a call. Each progress notification restarts it.
    pub call_timeout: Duration,
    /// The maximum total time of a call. Never shorter than `call_timeout`.
    pub call_timeout_max: Duration,
    /// The maximum number of concurrent calls.
    pub calls_in_flight: usize,
    /// The maximum time that a client may take to answer an input request.
    pub input_timeout: Duration,
    /// How long lists wait for upstreams that are slow to start.
    pub list_wait: Duration,
    /// The limits of tasks.
    pub tasks: TaskLimits,
}

/// The plan of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlan {
    /// The format of an event.
    pub format: LogFormat,
    /// The lowest level that is logged.
    pub level: LogLevel,
    /// Whether arguments and results are logged too.
    pub payloads: bool,
}

impl Plan {
    /// Loads a configuration and resolves it, given the available packs.
    pub fn load(source: ConfigSource<'_>, known_packs: &[&str]) -> Result<Self, ConfigError> {
        Self::load_with_environment(source, known_packs, &|name| std::env::var(name))
    }

    /// The same, with `lookup` for the variables in `${NAME}`.
    pub fn load_with_environment(
        source: ConfigSource<'_>,
        known_packs: &[&str],
        lookup: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        let (name, text) = (source.name(), source.text()?);
        let mut plan = Self::load_text(&name, &text, source.folder(), known_packs, lookup)?;
        if let ConfigSource::File(file) = source {
            plan.upstreams.iter_mut().for_each(|upstream| upstream.name_login_command(file));
        }
        Ok(plan)
    }

    /// The same for a text. Errors show it under this name, and its relative paths start at this folder.
    pub fn load_text(
        name: &str,
        text: &str,
        folder: &Path,
        known_packs: &[&str],
        lookup: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        if text.trim_start().starts_with('{') {
            return Err(ConfigError::json_file(name));
        }
        let mut plan = Self::read(text, folder, known_packs, lookup)
            .map_err(|problem| problem.into_error(name, text))?;
        plan.admin = plan.admin.map(|admin| admin.locate_problem(name, text));
        Ok(plan.resolve_paths(folder))
    }

    /// Resolves relative paths against this folder.
    fn resolve_paths(self, folder: &Path) -> Self {
        let server = |mut server: ServerPlan| {
            server.chain =
                server.chain.into_iter().map(|layer| layer.resolve_paths(folder)).collect();
            server
        };
        Self {
            server: server(self.server),
            other_servers: self.other_servers.into_iter().map(server).collect(),
            upstreams: self
                .upstreams
                .into_iter()
                .map(|upstream| upstream.resolve_paths(folder))
                .collect(),
            http: self.http.map(|http| http.resolve_paths(folder)),
            auth: self.auth.map(|auth| auth.resolve_paths(folder)),
            admin: self.admin.map(|admin| admin.resolve_paths(folder)),
            state: self.state.map(|state| state.resolve_paths(folder)),
            seal_keys: self.seal_keys.map(|file| folder.join(file)),
            ..self
        }
    }

    /// The files that the plan includes besides its own file. A change of any of them requires a reload.
    pub fn included_files(&self) -> Vec<PathBuf> {
        let servers = std::iter::once(&self.server).chain(&self.other_servers);
        let chains = servers
            .map(|server_plan| &server_plan.chain)
            .chain(self.upstreams.iter().map(|upstream| &upstream.chain));
        let of_layers = chains.flatten().filter_map(LayerPlan::script);
        let of_tools = self.recipes.iter().filter_map(Recipe::script);
        let scripts = of_layers.chain(of_tools).map(|script| script.file().to_owned());
        let documents = self.recipes.iter().filter_map(Recipe::api).flat_map(|api| &*api.files);
        let authorities = self.upstreams.iter().filter_map(UpstreamPlan::ca_certificates);
        let authorities = authorities.map(|authorities| authorities.file().to_owned());
        let logins = self.upstreams.iter().filter_map(UpstreamPlan::oauth);
        let secrets = logins.flat_map(|oauth| oauth.files.iter().cloned());
        let others = documents.cloned().chain(self.seal_keys.clone()).chain(authorities);
        let issuers = self.auth.iter().flat_map(|auth| &auth.issuers);
        let others = others.chain(secrets).chain(issuers.flat_map(|it| it.files.iter().cloned()));
        let collectors = self.telemetry.included_files().map(Path::to_owned);
        let others = others
            .chain(self.state.as_ref().and_then(StatePlan::included_files).map(Path::to_owned));
        let mut files: Vec<PathBuf> = scripts.chain(others).chain(collectors).collect();
        files.sort();
        files.dedup();
        files
    }

    fn read(
        text: &str,
        folder: &Path,
        known_packs: &[&str],
        lookup: Lookup<'_>,
    ) -> Result<Self, ConfigProblem> {
        let mut config = Config::parse(text, lookup)?;
        let upstreams = upstream::resolve(config.upstreams.take(), folder)?;
        let (databases, tables) = database::resolve(config.databases.take(), folder)?;
        let (mut recipes, times) = tools::resolve(config.tools.take(), &databases, folder)?;
        recipes.extend(files::resolve(&mut config, folder)?);
        recipes.extend(tables);
        let (apis, described) = openapi::resolve(config.openapi.take(), folder)?;
        recipes.extend(apis);
        let issuers = config.auth.as_ref().map(|auth| auth.value.issuer_labels());
        let known = servers::AvailableItems {
            issuers: issuers.as_deref(),
            packs: known_packs,
            upstreams: &upstreams,
            recipes: &recipes,
            folder,
        };
        let (server, further) = servers::resolve(&mut config, &known)?;
        let all = || std::iter::once(&server).chain(&further);
        let max_message = all().map(|server| server.dialect.max_message).max().unwrap_or_default();
        let http = config.http.map(|table| http::resolve(table, max_message)).transpose()?;
        let log = log(&config.log.unwrap_or_default(), server.dialect.telemetry);
        let telemetry = telemetry::resolve(config.telemetry, folder, lookup)?;
        let auth = config.auth.map(|table| auth::resolve(table, folder)).transpose()?;
        let admin = config.admin.map(admin::resolve).transpose()?;
        let policy = config.policy.map(policy::resolve).transpose()?;
        let (state, seal_keys) = state::resolve(config.state.take(), folder)?;
        let packs: Vec<String> = all().flat_map(|server| server.packs.clone()).collect();
        let skills = skills::folder(config.skills, &packs, folder)?;
        let tasks = database::tasks(config.tasks, &packs, folder)?;
        let wordpress = wordpress::resolve(config.wordpress, &packs, auth.is_some(), folder)?;
        let plan = Self {
            server,
            other_servers: further,
            upstreams,
            http,
            auth,
            admin,
            policy,
            state,
            seal_keys,
            log,
            telemetry,
            skills,
            tasks,
            wordpress,
            recipes,
        };
        if plan.policy.is_some() {
            let servers = std::iter::once(&plan.server).chain(&plan.other_servers);
            servers.into_iter().try_for_each(policy::check_place)?;
        }
        times.check(&plan)?;
        described.check(&plan)?;
        Ok(plan)
    }
}

impl Default for LimitsPlan {
    fn default() -> Self {
        Self {
            call_timeout: Duration::from_secs(60),
            call_timeout_max: Duration::from_secs(600),
            calls_in_flight: 1000,
            input_timeout: Duration::from_secs(600),
            list_wait: creole_gateway::federation::LIST_WAIT,
            tasks: TaskLimits::default(),
        }
    }
}

fn server(
    table: ServerTable,
    known: &servers::AvailableItems<'_>,
) -> Result<ServerPlan, ConfigProblem> {
    let name = label("name", table.name)?.unwrap_or_else(|| DEFAULT_NAME.to_owned());
    Ok(ServerPlan {
        dialect: dialect::resolve(table.dialect.as_ref(), &name)?,
        title: label("title", table.title)?,
        version: label("version", table.version)?.unwrap_or_else(|| DEFAULT_VERSION.to_owned()),
        instructions: table.instructions,
        packs: packs(table.packs.unwrap_or_default(), known.packs)?,
        page_size: table.page_size.map_or(100, |size| count(size.get())),
        limits: limits::resolve(&table.limits.unwrap_or_default())?,
        chain: chain::resolve(table.chain, known.folder)?,
        auth: oauth::resolve_server(table.auth, known.issuers)?,
        path: None,
        upstreams: None,
        tools: None,
        folders: None,
        prompts: None,
        resources: None,
        databases: None,
        openapi: None,
        name,
    })
}

/// A short text that people and programs see.
fn label(key: &str, item: Option<Spanned<String>>) -> Result<Option<String>, ConfigProblem> {
    let Some(Spanned { value, span }) = item else { return Ok(None) };
    let problem = if value.trim().is_empty() {
        format!("`{key}` is empty")
    } else if value.chars().any(char::is_control) {
        format!("`{key}` has a control character or a line break")
    } else if value.chars().count() > MAX_LABEL {
        format!("`{key}` is longer than {MAX_LABEL} characters")
    } else {
        return Ok(Some(value));
    };
    Err(ConfigProblem::new(problem).at(span))
}

fn packs(values: Vec<Spanned<String>>, known: &[&str]) -> Result<Vec<String>, ConfigProblem> {
    let mut packs = Vec::with_capacity(values.len());
    for Spanned { value: name, span } in values {
        if !known.contains(&name.as_str()) {
            if let Some(problem) = wordpress::missing_pack(&name) {
                return Err(problem.at(span));
            }
            let help = suggestion(&name, "the packs", known);
            return Err(ConfigProblem::new(format!("unknown pack `{name}`")).help(help).at(span));
        }
        if packs.contains(&name) {
            return Err(ConfigProblem::new(format!("the pack `{name}` is listed twice")).at(span));
        }
        packs.push(name);
    }
    Ok(packs)
}

fn log(table: &LogTable, telemetry: bool) -> LogPlan {
    let payloads = table.payloads.unwrap_or(false);
    let default_value = if telemetry || payloads { LogLevel::Info } else { LogLevel::Warn };
    LogPlan {
        format: table.format.unwrap_or(LogFormat::Text),
        level: table.level.unwrap_or(default_value),
        payloads,
    }
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(number.unsigned_abs())
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn to_u32(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;

/// The path of a file.
fn file(key: &str, item: Spanned<String>) -> Result<PathBuf, ConfigProblem> {
    let Spanned { value, span } = item;
    if value.trim().is_empty() {
        return Err(ConfigProblem::new(format!("`{key}` is empty")).at(span));
    }
    if value.chars().any(char::is_control) {
        let message = format!("`{key}` has a control character or a line break");
        return Err(ConfigProblem::new(message).at(span));
    }
    Ok(value.into())
}
