//! Several servers in one process: each is a plan of its own.

use std::collections::HashSet;

use super::upstream::UpstreamPlan;
use super::{Plan, ServerPlan, http, server};
use crate::config::error::Problem;
use crate::config::nearest::suggestion;
use crate::config::value::Placed;
use crate::config::{Config, ServerTable};

/// The servers of a configuration, in the order in which they were written; there is one at least.
pub(super) fn resolve(
    config: &mut Config,
    known_packs: &[&str],
    upstreams: &[UpstreamPlan],
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
            return Err(Problem::new("there is no server")
                .help("begin with a table `[server]`, or with `[[servers]]` for each of several"));
        }
    }
    .into_iter();
    let mut taken = HashSet::new();
    let mut next = |table: Placed<ServerTable>, is_first: bool| {
        let span = table.span.clone();
        let server = one(table, known_packs, upstreams, is_first)?;
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
    known_packs: &[&str],
    upstreams: &[UpstreamPlan],
    is_first: bool,
) -> Result<ServerPlan, Problem> {
    let (table, span) = (table.value, table.span);
    let chosen = table.upstreams.as_deref().map(|names| behind(names, upstreams)).transpose()?;
    let path = table.path.as_ref().map(|path| http::path("path", path)).transpose()?;
    let mut server = server(table, known_packs)?;
    server.upstreams = chosen;
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

/// The names of servers behind, each of which there is.
fn behind(names: &[Placed<String>], known: &[UpstreamPlan]) -> Result<Vec<String>, Problem> {
    let known: Vec<&str> = known.iter().map(|upstream| upstream.name.as_str()).collect();
    let named = |Placed { value, span }: &Placed<String>| match known.contains(&value.as_str()) {
        true => Ok(value.clone()),
        false => {
            let help = suggestion(value, "the servers behind that are enabled", &known);
            Err(Problem::new(format!("unknown upstream `{value}`")).help(help).at(span.clone()))
        }
    };
    names.iter().map(named).collect()
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
