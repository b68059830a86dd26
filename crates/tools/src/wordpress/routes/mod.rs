//! The pack `wordpress`: tools that are made of the site's own index of routes, where the configuration allows them.
//!
//! The index is read as a stranger sees it, because what is told to somebody may depend on who that is. It is read again
//! from time to time; while it cannot be read, what was made of it last stays.

mod author;
mod index;
mod names;
mod schema;
mod verify;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::proto::model::ListKind;
use creole::proto::operation::{Change, Operation};
use creole::proto::wire::Raw;
use creole::{
    BoxFuture, Call, Context, Middleware, Next, Outcome, Server, Source, Tool, ToolError,
    ToolResult,
};
use http::Method;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::sync::watch;

use self::index::{Endpoint, Part, Verb};
use super::address::percent;
use super::answer;
use super::guard;
use super::site::{Asked, Site};
use super::trouble::Trouble;
use super::visitors::Visitor;

/// How often the index is read.
const REFRESH: Duration = Duration::from_secs(600);
/// How soon it is read again where that failed; longer each time.
const RETRY: Duration = Duration::from_secs(5);
/// How long the first callers wait for it.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most tools that are made: a model chooses badly among more.
const MOST: usize = 200;

/// Adds the pack.
pub(crate) fn add(server: Server, site: &Site) -> Server {
    let (told, ready) = watch::channel(false);
    let site = site.clone();
    server.with(Patience(ready)).setup(move |registry| {
        let source = Arc::new(registry.source());
        // That there are tools is told before it is known which.
        source.set_tools(Vec::new());
        let kept = Arc::downgrade(&source);
        registry.keep(source);
        // Without a runtime nobody will ever call.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(keep(site, kept, told));
        }
    })
}

/// Has those wait who come before the index was read.
struct Patience(watch::Receiver<bool>);

impl Middleware for Patience {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let waits = matches!(
            call.operation,
            Operation::List(ListKind::Tools, _) | Operation::CallTool { .. }
        );
        if !waits || *self.0.borrow() {
            return next.call(call);
        }
        let mut ready = self.0.clone();
        Box::pin(async move {
            // Too late or never: then there are no such tools.
            let _ = tokio::time::timeout(PATIENCE, ready.wait_for(|ready| *ready)).await;
            next.call(call).await
        })
    }
}

/// Keeps the tools as the index has them, for as long as the server lives.
async fn keep(site: Site, source: Weak<Source>, told: watch::Sender<bool>) {
    let mut known: Option<Vec<Endpoint>> = None;
    let mut retry = RETRY;
    loop {
        let read = read(&site).await;
        let Some(source) = source.upgrade() else { return };
        let wait = match read {
            Ok(endpoints) => {
                if known.as_ref() != Some(&endpoints) {
                    offer(&endpoints, &site, &source);
                }
                known = Some(endpoints);
                retry = RETRY;
                REFRESH
            }
            Err(trouble) => {
                let why = trouble.told(false);
                tracing::warn!(%why, "the routes of the site cannot be read; the tools stay as they are");
                retry = (retry * 2).min(REFRESH);
                retry
            }
        };
        drop(source);
        told.send_replace(true);
        tokio::time::sleep(wait).await;
    }
}

/// Offers these in place of those before. A tool of the same name that was there already, such as a curated one, stays.
fn offer(endpoints: &[Endpoint], site: &Site, source: &Source) {
    let names = names::names(endpoints);
    let tools = names.iter().zip(endpoints).map(|(name, endpoint)| tool(name, endpoint, site));
    for name in source.set_tools(tools.collect()) {
        tracing::info!("the route of `{name}` is left out: there is a tool of that name");
    }
    source.announce(Change::List(ListKind::Tools));
}

/// What the site offers and the configuration allows.
async fn read(site: &Site) -> Result<Vec<Endpoint>, Trouble> {
    let routes = &site.shared.settings.routes;
    let mut found = Vec::new();
    let mut indexes: BTreeSet<String> = BTreeSet::new();
    for pattern in routes.read.iter().chain(&routes.write) {
        let namespace: Vec<&str> = pattern.split('/').take(2).collect();
        // A namespace has an index of its own, which is a fraction of the whole.
        let is_plain = namespace.len() == 2 && !namespace.contains(&"*");
        indexes.insert(if is_plain { format!("/{}", namespace.join("/")) } else { "/".to_owned() });
    }
    if indexes.contains("/") {
        indexes = BTreeSet::from(["/".to_owned()]);
    }
    for index in indexes {
        let answered = site.ask(None, &Asked::get(index)).await?;
        found.extend(index::endpoints(&answered.body, routes));
    }
    if found.len() > MOST {
        let all = found.len();
        tracing::warn!("{all} routes are allowed as tools; only the first {MOST} are: allow fewer");
        found.truncate(MOST);
    }
    Ok(found)
}

fn tool(name: &str, endpoint: &Endpoint, site: &Site) -> Tool {
    let method = method(endpoint.verb);
    let about = format!("{method} /{} of the WordPress site.", endpoint.template());
    let (verb, schema) = (endpoint.verb, Raw::from_value(&endpoint.schema));
    let shared = Arc::new((endpoint.clone(), site.clone()));
    let run = move |arguments: Value, context: Context| -> BoxFuture<'static, _> {
        let shared = Arc::clone(&shared);
        Box::pin(async move { call(&shared.0, &shared.1, arguments, &context).await })
    };
    Tool::raw(name, &about, schema, run).hints(|hints| {
        hints.read_only_hint = Some(verb == Verb::Read);
        hints.destructive_hint = (verb != Verb::Read).then_some(verb == Verb::Delete);
    })
}

fn method(verb: Verb) -> Method {
    match verb {
        Verb::Read => Method::GET,
        Verb::Create => Method::POST,
        Verb::Update => Method::PUT,
        Verb::Delete => Method::DELETE,
    }
}

async fn call(
    endpoint: &Endpoint,
    site: &Site,
    arguments: Value,
    context: &Context,
) -> Result<ToolResult, ToolError> {
    let Value::Object(arguments) = arguments else {
        return Err(ToolError::failed("no arguments"));
    };
    let visitor = site.visitor(context.principal()).await?;
    run_as(endpoint, site, &visitor, arguments).await
}

async fn run_as(
    endpoint: &Endpoint,
    site: &Site,
    visitor: &Visitor,
    mut arguments: Map<String, Value>,
) -> Result<ToolResult, ToolError> {
    let page = arguments.get("page").and_then(Value::as_u64).unwrap_or(1);
    let route = route(endpoint, &mut arguments)?;
    if endpoint.verb == Verb::Delete && guard::deletes(&route, visitor.id) {
        return Err(ToolError::failed(guard::OWN_ACCOUNT));
    }
    let is_lost = endpoint.verb != Verb::Read
        && guard::is_of_platform(&route)
        && !site.is_early(visitor).await;
    if is_lost {
        return Err(ToolError::failed(guard::LATE));
    }
    if endpoint.verb == Verb::Update {
        author::keep(site, visitor, &route, &mut arguments).await?;
    }
    let asked = Asked::new(method(endpoint.verb), route);
    let asked = match endpoint.verb {
        Verb::Create | Verb::Update => asked.body(Value::Object(arguments.clone())),
        Verb::Read | Verb::Delete => {
            arguments.iter().fold(asked, |asked, (key, value)| match value {
                Value::String(text) => asked.with(key, text),
                Value::Array(items) => {
                    items.iter().fold(asked, |asked, item| match item.as_str() {
                        Some(text) => asked.with(&format!("{key}[]"), text),
                        None => asked.with(&format!("{key}[]"), item),
                    })
                }
                other => asked.with(key, other),
            })
        }
    };
    let answered = site.ask(Some(&visitor.proof), &asked).await;
    let answered = answered.map_err(|trouble| {
        if matches!(&trouble, Trouble::Refused(refusal) if refusal.status == 401) {
            site.shared.visitors.forget(visitor);
        }
        ToolError::failed(trouble.told(asked.is_write()))
    })?;
    let answered = verify::verified(site, visitor, endpoint, &asked, &arguments, answered).await?;
    Ok(answer::result(answered, page))
}

/// The route with the values of its arguments, which are taken out of the others.
fn route(endpoint: &Endpoint, arguments: &mut Map<String, Value>) -> Result<String, ToolError> {
    let mut route = String::new();
    for part in &endpoint.parts {
        route.push('/');
        match part {
            Part::Text(text) => route.push_str(text),
            Part::Argument { name, .. } => {
                let value = match arguments.remove(name) {
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                // These would lead to another route.
                if ["", ".", ".."].contains(&value.as_str()) || value.contains(['/', '\\']) {
                    return Err(ToolError::failed(format!("`{name}` cannot stand in a route")));
                }
                percent(&value, &mut route);
            }
        }
    }
    Ok(route)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod route_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_never_leads_to_another_route() {
        let parts = vec![
            Part::Text("wp".to_owned()),
            Part::Argument { name: "slug".to_owned(), is_number: false },
        ];
        let endpoint = Endpoint { verb: Verb::Read, parts, schema: Value::Null };
        let at = |slug: Value| route(&endpoint, &mut Map::from_iter([("slug".to_owned(), slug)]));
        assert_eq!(at(json!("a b?c#d")).unwrap(), "/wp/a%20b%3Fc%23d");
        assert_eq!(at(json!(7)).unwrap(), "/wp/7");
        for wrong in ["", ".", "..", "../users", "a/b", "a\\b"] {
            assert!(at(json!(wrong)).is_err(), "{wrong}");
        }
    }
}
