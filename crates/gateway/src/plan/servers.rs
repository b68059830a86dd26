//! Several servers in one process: each is a plan of its own.

use std::collections::HashSet;
use std::path::Path;

use creole_tools::recipe::Recipe;

use super::upstream::UpstreamPlan;
use super::{Plan, ServerPlan, http, server};
use crate::config::error::Problem;
use crate::config::nearest::suggestion;
use crate::config::value::Placed;
use crate::config::{Config, ServerTable};

/// What servers can have.
pub(super) struct Known<'a> {
    pub(super) packs: &'a [&'a str],
    pub(super) upstreams: &'a [UpstreamPlan],
    pub(super) recipes: &'a [Recipe],
    /// Where relative paths begin.
    pub(super) folder: &'a Path,
}

/// The servers of a configuration, in the order in which they were written; there is one at least.
pub(super) fn resolve(
    config: &mut Config,
    known: &Known<'_>,
) -> Result<(ServerPlan, Vec<ServerPlan>), Problem> {
    let mut written = match (config.server.take(), config.servers.take()) {
        (Some(only), None) => vec![only],
        (None, Some(several)) if !several.value.is_empty() => several.value,
        (Some(_), Some(several)) => {
            return Err(Problem::new("there is a table `server`, and `servers` besides")
                .help("write `[server]` for one, or `[[servers]]` for each of several")
                .at(several.span));
        }
        _ => {
            return Err(Problem::new("the configuration describes nothing to serve").help(
                "add an upstream with a table `[upstreams.NAME]`, or `[server]` with `packs`",
            ));
        }
    }
    .into_iter();
    let mut taken = HashSet::new();
    let mut next = |table: Placed<ServerTable>, is_first: bool| {
        let span = table.span.clone();
        let server = one(table, known, is_first)?;
        check_distinct(&server, &mut taken).map_err(|problem| problem.at_least(span))?;
        Ok(server)
    };
    let first = written.next().ok_or_else(|| Problem::new("there is no server"))?;
    let first = next(first, true)?;
    let further = written.map(|table| next(table, false)).collect::<Result<_, _>>()?;
    Ok((first, further))
}

fn one(
    table: Placed<ServerTable>,
    known: &Known<'_>,
    is_first: bool,
) -> Result<ServerPlan, Problem> {
    let (table, span) = (table.value, table.span);
    let upstreams = chosen(table.upstreams.as_deref(), &UPSTREAMS, || {
        known.upstreams.iter().map(|upstream| upstream.name.as_str()).collect()
    })?;
    let of_kind = |names: Option<&[Placed<String>]>, kind: &'static Kind| {
        chosen(names, kind, || {
            let fitting = known.recipes.iter().filter(|recipe| kind_of(recipe).one == kind.one);
            fitting.map(Recipe::name).collect()
        })
    };
    let tools = of_kind(table.tools.as_deref(), &TOOLS)?;
    let folders = of_kind(table.folders.as_deref(), &FOLDERS)?;
    let prompts = of_kind(table.prompts.as_deref(), &PROMPTS)?;
    let resources = of_kind(table.resources.as_deref(), &RESOURCES)?;
    let databases = of_kind(table.databases.as_deref(), &DATABASES)?;
    let openapi = of_kind(table.openapi.as_deref(), &OPENAPI)?;
    let path = table.path.as_ref().map(|path| http::path("path", path)).transpose()?;
    let mut server = server(table, known)?;
    (server.upstreams, server.tools) = (upstreams, tools);
    (server.folders, server.prompts, server.resources) = (folders, prompts, resources);
    server.databases = databases;
    server.openapi = openapi;
    server.path = match path {
        None if !is_first => {
            let path = Placed { value: format!("/{}/mcp", server.name), span };
            Some(http::path("path", &path).map_err(|problem| {
                problem.help("the name makes no path; give the server a `path` of its own")
            })?)
        }
        path => path,
    };
    Ok(server)
}

/// How that is called of which a server may choose some: one of it, and all of it.
struct Kind {
    one: &'static str,
    all: &'static str,
}

const UPSTREAMS: Kind = Kind { one: "upstream", all: "the servers behind that are enabled" };
const TOOLS: Kind = Kind { one: "tool", all: "the tools in `[tools]` that are enabled" };
const FOLDERS: Kind = Kind { one: "folder", all: "the folders in `[folders]` that are enabled" };
const PROMPTS: Kind =
    Kind { one: "folder of prompts", all: "the folders in `[prompts]` that are enabled" };
const RESOURCES: Kind =
    Kind { one: "resource", all: "the resources in `[resources]` that are enabled" };
const OPENAPI: Kind = Kind { one: "service", all: "the services in `[openapi]` that are enabled" };

const DATABASES: Kind =
    Kind { one: "database with tables", all: "the databases in `[databases]` that have `tables`" };

fn kind_of(recipe: &Recipe) -> &'static Kind {
    match recipe {
        Recipe::Tool(_) => &TOOLS,
        Recipe::Folder(_) => &FOLDERS,
        Recipe::Prompts(_) => &PROMPTS,
        Recipe::Resource(_) => &RESOURCES,
        Recipe::Tables(_) => &DATABASES,
        Recipe::Api(_) => &OPENAPI,
    }
}

/// The names that a server chooses, each of which there is; nothing if it does not choose.
fn chosen<'a>(
    names: Option<&[Placed<String>]>,
    kind: &Kind,
    known: impl FnOnce() -> Vec<&'a str>,
) -> Result<Option<Vec<String>>, Problem> {
    let Some(names) = names else { return Ok(None) };
    let known = known();
    let named = |Placed { value, span }: &Placed<String>| match known.contains(&value.as_str()) {
        true => Ok(value.clone()),
        false => {
            let help = suggestion(value, kind.all, &known);
            let what = format!("unknown {} `{value}`", kind.one);
            Err(Problem::new(what).help(help).at(span.clone()))
        }
    };
    names.iter().map(named).collect::<Result<_, _>>().map(Some)
}

fn check_distinct(server: &ServerPlan, taken: &mut HashSet<String>) -> Result<(), Problem> {
    let of_path = server.path.as_ref().map(|path| (format!("path {path}"), "path"));
    for (key, what) in [(format!("name {}", server.name), "name")].into_iter().chain(of_path) {
        if !taken.insert(key) {
            return Err(Problem::new(format!("two servers have the same {what}"))
                .help("give each of several servers a `name` and a `path` of its own"));
        }
    }
    Ok(())
}

impl Plan {
    /// A plan for each of the servers, as if it were the only one.
    pub fn each(&self) -> Vec<Self> {
        let all = std::iter::once(&self.server).chain(&self.further);
        all.map(|server| self.only(server.clone())).collect()
    }

    /// The plan of the server of this name alone.
    pub fn named(&self, name: &str) -> Option<Self> {
        self.each().into_iter().find(|plan| plan.server.name == name)
    }

    /// What the server, or the first of several, has of what was described.
    pub fn offered(&self) -> impl Iterator<Item = &Recipe> {
        let server = &self.server;
        self.recipes.iter().filter(move |recipe| {
            let chosen = match recipe {
                Recipe::Tool(_) => &server.tools,
                Recipe::Folder(_) => &server.folders,
                Recipe::Prompts(_) => &server.prompts,
                Recipe::Resource(_) => &server.resources,
                Recipe::Tables(_) => &server.databases,
                Recipe::Api(_) => &server.openapi,
            };
            chosen.as_ref().is_none_or(|chosen| chosen.iter().any(|name| name == recipe.name()))
        })
    }

    /// Whether the server has something besides what the servers behind it have.
    pub fn has_own(&self) -> bool {
        !self.server.packs.is_empty() || self.offered().next().is_some()
    }

    /// The same, and it can be used now: a document that could not be fetched has no tools yet.
    pub fn has_usable(&self) -> bool {
        let is_usable = |recipe: &Recipe| recipe.api().is_none_or(|api| api.failure.is_none());
        !self.server.packs.is_empty() || self.offered().any(is_usable)
    }

    fn only(&self, server: ServerPlan) -> Self {
        let has = |name: &String| server.upstreams.as_ref().is_none_or(|all| all.contains(name));
        let upstreams = self.upstreams.iter().filter(|upstream| has(&upstream.name)).cloned();
        // What one server keeps is nothing to the others.
        let state = self.state.as_ref().map(|file| match server.name == self.server.name {
            true => file.clone(),
            false => file.with_extension(format!("{}.sqlite", server.name)),
        });
        let skills = self.skills.clone().filter(|_| server.packs.iter().any(|it| it == "skills"));
        let upstreams = upstreams.collect();
        Self { server, further: Vec::new(), upstreams, state, skills, ..self.clone() }
    }
}
