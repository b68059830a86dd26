//! Resolves the servers of one process. Each gets its own plan.

use std::collections::HashSet;
use std::path::Path;

use creole_tools::recipe::Recipe;

use crate::plan::upstream::UpstreamPlan;
use crate::plan::{Plan, ServerPlan, http, server};
use crate::syntax::error::ConfigProblem;
use crate::syntax::suggestions::suggestion;
use crate::syntax::value::Spanned;
use crate::tables::{Config, ServerTable};

/// The items that servers can choose from.
pub(crate) struct AvailableItems<'a> {
    pub(crate) packs: &'a [&'a str],
    pub(crate) upstreams: &'a [UpstreamPlan],
    pub(crate) recipes: &'a [Recipe],
    /// The names of the issuers; `None` without `[auth]`.
    pub(crate) issuers: Option<&'a [String]>,
    /// The folder that relative paths start at.
    pub(crate) folder: &'a Path,
}

/// The servers of a configuration, in the order of the file. There is at least one.
pub(crate) fn resolve(
    config: &mut Config,
    known: &AvailableItems<'_>,
) -> Result<(ServerPlan, Vec<ServerPlan>), ConfigProblem> {
    let mut written = match (config.server.take(), config.servers.take()) {
        (Some(only), None) => vec![only],
        (None, Some(several)) if !several.value.is_empty() => several.value,
        (Some(_), Some(several)) => {
            return Err(ConfigProblem::new("both `[server]` and `[[servers]]` are present")
                .help("use `[server]` for one server, or `[[servers]]` for each of several")
                .at(several.span));
        }
        _ => {
            return Err(ConfigProblem::new("the configuration describes nothing to serve").help(
                "add an upstream with a table `[upstreams.NAME]`, or `packs` to `[server]`",
            ));
        }
    }
    .into_iter();
    let mut taken = HashSet::new();
    let mut next = |table: Spanned<ServerTable>, is_first: bool| {
        let span = table.span.clone();
        let server = resolve_one(table, known, is_first)?;
        check_distinct(&server, &mut taken).map_err(|problem| problem.or_at(span))?;
        Ok(server)
    };
    let first = written.next().ok_or_else(|| ConfigProblem::new("`[[servers]]` is empty"))?;
    let first = next(first, true)?;
    let further = written.map(|table| next(table, false)).collect::<Result<_, _>>()?;
    Ok((first, further))
}

fn resolve_one(
    table: Spanned<ServerTable>,
    known: &AvailableItems<'_>,
    is_first: bool,
) -> Result<ServerPlan, ConfigProblem> {
    let (table, span) = (table.value, table.span);
    let upstreams = chosen_names(table.upstreams.as_deref(), &UPSTREAMS, || {
        known.upstreams.iter().map(|upstream| upstream.name.as_str()).collect()
    })?;
    let of_kind = |names: Option<&[Spanned<String>]>, kind: &'static ItemNoun| {
        chosen_names(names, kind, || {
            let fitting =
                known.recipes.iter().filter(|recipe| noun_of(recipe).singular == kind.singular);
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
            let path = Spanned { value: format!("/{}/mcp", server.name), span };
            Some(http::path("path", &path).map_err(|problem| {
                problem.help("the server's name cannot be used as a path; set its `path`")
            })?)
        }
        path => path,
    };
    Ok(server)
}

/// The words for a kind of item in messages: for one item, and for all of them.
struct ItemNoun {
    singular: &'static str,
    plural: &'static str,
}

const UPSTREAMS: ItemNoun = ItemNoun { singular: "upstream", plural: "the enabled upstreams" };
const TOOLS: ItemNoun = ItemNoun { singular: "tool", plural: "the enabled tools in `[tools]`" };
const FOLDERS: ItemNoun =
    ItemNoun { singular: "folder", plural: "the enabled folders in `[folders]`" };
const PROMPTS: ItemNoun =
    ItemNoun { singular: "prompt folder", plural: "the enabled folders in `[prompts]`" };
const RESOURCES: ItemNoun =
    ItemNoun { singular: "resource", plural: "the enabled resources in `[resources]`" };
const OPENAPI: ItemNoun =
    ItemNoun { singular: "service", plural: "the enabled services in `[openapi]`" };

const DATABASES: ItemNoun = ItemNoun {
    singular: "database with tables",
    plural: "the databases in `[databases]` with `tables`",
};

fn noun_of(recipe: &Recipe) -> &'static ItemNoun {
    match recipe {
        Recipe::Tool(_) => &TOOLS,
        Recipe::Folder(_) => &FOLDERS,
        Recipe::Prompts(_) => &PROMPTS,
        Recipe::Resource(_) => &RESOURCES,
        Recipe::Tables(_) => &DATABASES,
        Recipe::Api(_) => &OPENAPI,
    }
}

/// The names that a server chooses, each checked to exist. `None` if it does not choose.
fn chosen_names<'a>(
    names: Option<&[Spanned<String>]>,
    kind: &ItemNoun,
    known: impl FnOnce() -> Vec<&'a str>,
) -> Result<Option<Vec<String>>, ConfigProblem> {
    let Some(names) = names else { return Ok(None) };
    let known = known();
    let named = |Spanned { value, span }: &Spanned<String>| match known.contains(&value.as_str()) {
        true => Ok(value.clone()),
        false => {
            let help = suggestion(value, kind.plural, &known);
            let message = format!("unknown {} `{value}`", kind.singular);
            Err(ConfigProblem::new(message).help(help).at(span.clone()))
        }
    };
    names.iter().map(named).collect::<Result<_, _>>().map(Some)
}

fn check_distinct(server: &ServerPlan, taken: &mut HashSet<String>) -> Result<(), ConfigProblem> {
    let of_path = server.path.as_ref().map(|path| (format!("path {path}"), "path"));
    for (key, description) in [(format!("name {}", server.name), "name")].into_iter().chain(of_path)
    {
        if !taken.insert(key) {
            return Err(ConfigProblem::new(format!("two servers have the same {description}"))
                .help("set a different `name` and `path` for each server"));
        }
    }
    Ok(())
}

impl Plan {
    /// One plan per server, as if it were the only one.
    pub fn split(&self) -> Vec<Self> {
        let all = std::iter::once(&self.server).chain(&self.other_servers);
        all.map(|server| self.with_server(server.clone())).collect()
    }

    /// The plan of only the server of this name.
    pub fn only_named(&self, name: &str) -> Option<Self> {
        self.split().into_iter().find(|plan| plan.server.name == name)
    }

    /// The configured items that the server, or the first of several, offers.
    pub fn offered_recipes(&self) -> impl Iterator<Item = &Recipe> {
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

    /// Whether the server has items besides those of its upstreams.
    pub fn has_own_items(&self) -> bool {
        !self.server.packs.is_empty() || self.offered_recipes().next().is_some()
    }

    /// The same, counting only items that work now: a document that could not be fetched has no tools yet.
    pub fn has_usable_items(&self) -> bool {
        let is_usable = |recipe: &Recipe| recipe.api().is_none_or(|api| api.failure.is_none());
        !self.server.packs.is_empty() || self.offered_recipes().any(is_usable)
    }

    fn with_server(&self, server: ServerPlan) -> Self {
        let has = |name: &String| server.upstreams.as_ref().is_none_or(|all| all.contains(name));
        let upstreams = self.upstreams.iter().filter(|upstream| has(&upstream.name)).cloned();
        // Servers do not share state.
        let state = self.state.as_ref().map(|state| match server.name == self.server.name {
            true => state.clone(),
            false => state.of_server(&server.name),
        });
        let skills =
            self.skills.clone().filter(|_| server.packs.iter().any(|text| text == "skills"));
        let upstreams = upstreams.collect();
        Self { server, other_servers: Vec::new(), upstreams, state, skills, ..self.clone() }
    }
}
