//! What a configuration means: checked, resolved, and never changed afterwards.

pub mod auth;
mod chain;
mod dialect;
mod errors;
pub mod http;
pub(crate) mod items;
pub mod layer;
mod limits;
mod restart;
mod servers;
pub mod upstream;

use std::path::{Path, PathBuf};
use std::time::Duration;

use creole::TaskLimits;
use creole_proto::dialect::Dialect;
use creole_tools::database::DatabaseAddress;
use creole_tools::recipe::Recipe;
use creole_tools::wordpress::SiteSettings as Site;

use auth::AuthPlan;
use items::{database, files, openapi, skills, tools, wordpress};
use layer::LayerPlan;
use upstream::UpstreamPlan;

use crate::source::ConfigSource;
use crate::syntax::environment::Lookup;
use crate::syntax::error::{ConfigError, ConfigProblem};
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::Spanned;
use crate::tables::enums::{LogFormat, LogLevel};
use crate::tables::{Config, LogTable, ServerTable};

pub use http::HttpPlan;
pub use restart::ClientScope;

/// The name of a server that was given none.
const DEFAULT_NAME: &str = "creole";
/// The version of a server that was given none.
const DEFAULT_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest name, title or version, in characters.
const MAX_LABEL: usize = 200;

/// Everything that one process does.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The server, or the first of several.
    pub server: ServerPlan,
    /// The others, where there are several.
    pub other_servers: Vec<ServerPlan>,
    /// The servers behind it.
    pub upstreams: Vec<UpstreamPlan>,
    /// How it is reached over HTTP; nothing where it is not.
    pub http: Option<HttpPlan>,
    /// Whom the server lets in over HTTP; without it, everybody.
    pub auth: Option<AuthPlan>,
    /// The file that tasks and sessions are kept in; without one, they live as long as the process.
    pub state: Option<PathBuf>,
    /// The file with the keys of what passes through clients.
    pub seal_keys: Option<PathBuf>,
    /// The log.
    pub log: LogPlan,
    /// The folder of the pack `skills`, where that is offered; there is one.
    pub skills: Option<PathBuf>,
    /// Where the pack `tasks` keeps its tasks, if something is said.
    pub tasks: Option<DatabaseAddress>,
    /// The WordPress site that packs work on.
    pub wordpress: Option<Site>,
    /// What was described and not programmed, in the order in which it was written; each server chooses.
    pub recipes: Vec<Recipe>,
}

/// One server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPlan {
    /// The name that clients are told.
    pub name: String,
    /// The name for people.
    pub title: Option<String>,
    /// The version that clients are told.
    pub version: String,
    /// What a model should know.
    pub instructions: Option<String>,
    /// How the server speaks; free of contradictions.
    pub dialect: Dialect,
    /// The packs that it offers, in the order in which they were written; each is known, none twice.
    pub packs: Vec<String>,
    /// How many entries one page of a list has.
    pub page_size: usize,
    /// How long and how many.
    pub limits: LimitsPlan,
    /// The path of its endpoint over HTTP; that of `[http]` if there is none.
    pub path: Option<String>,
    /// Which of the servers behind it has; all if nothing is said.
    pub upstreams: Option<Vec<String>>,
    /// Which of the described tools it has; all if nothing is said.
    pub tools: Option<Vec<String>>,
    /// Which of the folders it has; all if nothing is said.
    pub folders: Option<Vec<String>>,
    /// Which of the folders of prompts it has; all if nothing is said.
    pub prompts: Option<Vec<String>>,
    /// Which of the described resources it has; all if nothing is said.
    pub resources: Option<Vec<String>>,
    /// Which of the databases it has the tables of; all if nothing is said.
    pub databases: Option<Vec<String>>,
    /// Which of the services of OpenAPI documents it has; all if nothing is said.
    pub openapi: Option<Vec<String>>,
    /// Layers around its calls, outermost first.
    pub chain: Vec<LayerPlan>,
}

/// How long and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsPlan {
    /// How long a call may be silent; progress starts the time anew.
    pub call_timeout: Duration,
    /// How long a call may take in all; never shorter than `call_timeout`.
    pub call_timeout_max: Duration,
    /// How many calls may run at the same time.
    pub calls_in_flight: usize,
    /// How long a question to the client may stay open.
    pub input_timeout: Duration,
    /// How long lists wait for upstreams that are slow to start.
    pub list_wait: Duration,
    /// How much tasks may take.
    pub tasks: TaskLimits,
}

/// What is logged, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPlan {
    /// How an event is written.
    pub format: LogFormat,
    /// The least important events that are still written.
    pub level: LogLevel,
    /// Whether arguments and results are logged too.
    pub payloads: bool,
}

impl Plan {
    /// Reads a configuration and works out what it means, given the packs that there are.
    pub fn load(source: ConfigSource<'_>, known_packs: &[&str]) -> Result<Self, ConfigError> {
        Self::load_with_environment(source, known_packs, &|name| std::env::var(name))
    }

    /// The same, where `${NAME}` means what is looked up.
    pub fn load_with_environment(
        source: ConfigSource<'_>,
        known_packs: &[&str],
        lookup: Lookup<'_>,
    ) -> Result<Self, ConfigError> {
        Self::load_text(&source.name(), &source.text()?, source.folder(), known_packs, lookup)
    }

    /// The same, of a text that errors call by this name, and whose paths are seen from this folder.
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
        let plan = Self::read(text, folder, known_packs, lookup)
            .map_err(|problem| problem.into_error(name, text))?;
        Ok(plan.resolve_paths(folder))
    }

    /// The same plan, with relative paths that begin at this folder.
    fn resolve_paths(self, folder: &Path) -> Self {
        let server = |mut server: ServerPlan| {
            server.chain =
                server.chain.into_iter().map(|layer| layer.resolve_paths(folder)).collect();
            server
        };
        Self {
            server: server(self.server),
            other_servers: self.other_servers.into_iter().map(server).collect(),
            upstreams: self.upstreams.into_iter().map(|it| it.resolve_paths(folder)).collect(),
            http: self.http.map(|http| http.resolve_paths(folder)),
            auth: self.auth.map(|auth| auth.resolve_paths(folder)),
            state: self.state.map(|file| folder.join(file)),
            seal_keys: self.seal_keys.map(|file| folder.join(file)),
            ..self
        }
    }

    /// The files that are part of it besides its own: when one of them changes, it means something else.
    pub fn included_files(&self) -> Vec<PathBuf> {
        let servers = std::iter::once(&self.server).chain(&self.other_servers);
        let chains = servers.map(|it| &it.chain).chain(self.upstreams.iter().map(|it| &it.chain));
        let of_layers = chains.flatten().filter_map(LayerPlan::script);
        let of_tools = self.recipes.iter().filter_map(Recipe::script);
        let scripts = of_layers.chain(of_tools).map(|script| script.file().to_owned());
        let documents = self.recipes.iter().filter_map(Recipe::api).flat_map(|api| &*api.files);
        let authorities = self.upstreams.iter().filter_map(UpstreamPlan::ca_certificates);
        let authorities = authorities.map(|authorities| authorities.file().to_owned());
        let others = documents.cloned().chain(self.seal_keys.clone()).chain(authorities);
        let mut files: Vec<PathBuf> = scripts.chain(others).collect();
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
        let known = servers::AvailableItems {
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
        let auth = config.auth.map(auth::resolve).transpose()?;
        let (state, seal_keys) = config.state.map_or((None, None), |it| (it.file, it.keys_file));
        let state = state.map(|written| file("file", written)).transpose()?;
        let seal_keys = seal_keys.map(|written| file("keys_file", written)).transpose()?;
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
            state,
            seal_keys,
            log,
            skills,
            tasks,
            wordpress,
            recipes,
        };
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

/// A short text that is shown to people and programs.
fn label(key: &str, written: Option<Spanned<String>>) -> Result<Option<String>, ConfigProblem> {
    let Some(Spanned { value, span }) = written else { return Ok(None) };
    let wrong = if value.trim().is_empty() {
        format!("`{key}` is empty")
    } else if value.chars().any(char::is_control) {
        format!("`{key}` has a control character or a line break")
    } else if value.chars().count() > MAX_LABEL {
        format!("`{key}` is longer than {MAX_LABEL} characters")
    } else {
        return Ok(Some(value));
    };
    Err(ConfigProblem::new(wrong).at(span))
}

fn packs(written: Vec<Spanned<String>>, known: &[&str]) -> Result<Vec<String>, ConfigProblem> {
    let mut packs = Vec::with_capacity(written.len());
    for Spanned { value: name, span } in written {
        if !known.contains(&name.as_str()) {
            let help = suggestion(&name, "the packs", known);
            return Err(ConfigProblem::new(format!("unknown pack `{name}`")).help(help).at(span));
        }
        if packs.contains(&name) {
            return Err(ConfigProblem::new(format!("the pack `{name}` is named twice")).at(span));
        }
        packs.push(name);
    }
    Ok(packs)
}

fn log(table: &LogTable, telemetry: bool) -> LogPlan {
    let payloads = table.payloads.unwrap_or(false);
    let usual = if telemetry || payloads { LogLevel::Info } else { LogLevel::Warn };
    LogPlan {
        format: table.format.unwrap_or(LogFormat::Text),
        level: table.level.unwrap_or(usual),
        payloads,
    }
}

fn seconds(number: i64) -> Duration {
    Duration::from_secs(number.unsigned_abs())
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;

/// The name of a file.
fn file(key: &str, written: Spanned<String>) -> Result<PathBuf, ConfigProblem> {
    let Spanned { value, span } = written;
    if value.trim().is_empty() {
        return Err(ConfigProblem::new(format!("`{key}` is empty")).at(span));
    }
    if value.chars().any(char::is_control) {
        let what = format!("`{key}` has a control character or a line break");
        return Err(ConfigProblem::new(what).at(span));
    }
    Ok(value.into())
}
