//! The pack `wordpress`: tools generated from the site's index of routes, as far as the configuration allows.
//!
//! The index is read anonymously, because its content may depend on the user. It is refreshed periodically. While it is
//! unreadable, the last tools stay.

mod index;
mod names;
mod schema;
mod verify;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use creole::internal::registry::ItemSource;
use creole::proto::model::ListKind;
use creole::proto::operation::{Change, Operation};
use creole::proto::wire::Raw;
use creole::{
    BoxFuture, Call, Context, Middleware, Next, Outcome, Server, Tool, ToolError, ToolResult,
};
use http::Method;
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::watch;

use self::index::{RouteAction, RouteEndpoint, RoutePart};
use super::site::{Site, SiteRequest};
use super::{tool_result, write_guard};
use crate::login::users::SiteUser;
use crate::site::address::percent_encode;
use crate::site::site_error::SiteError;

/// The interval between refreshes of the index.
const REFRESH_INTERVAL: Duration = Duration::from_secs(600);
/// The delay before the first retry; it grows with each further one.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// Maximum time that the first callers wait for the index.
const INDEX_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of generated tools: a model chooses badly among more.
const MAX_TOOLS: usize = 200;

/// Adds the pack.
pub(crate) fn add(server: Server, site: &Site) -> Server {
    let (sender, ready) = watch::channel(false);
    let site = site.clone();
    server.with(WaitForIndex(ready)).setup(move |registry| {
        let source = Arc::new(registry.add_source());
        // The tools capability is announced before the tools are known.
        source.set_tools(Vec::new());
        let kept = Arc::downgrade(&source);
        registry.attach(source);
        // Without a runtime there are no calls.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(refresh_tools(site, kept, sender));
        }
    })
}

/// Delays requests until the index has been read.
struct WaitForIndex(watch::Receiver<bool>);

impl Middleware for WaitForIndex {
    fn is_internal(&self) -> bool {
        true
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let waits = matches!(
            call.operation,
            Operation::List(ListKind::Tools, _) | Operation::CallTool { .. }
        );
        if !waits || *self.0.borrow() {
            return next.start(call);
        }
        let mut ready = self.0.clone();
        Box::pin(async move {
            // After a timeout or a failure there are no such tools.
            let _ = tokio::time::timeout(INDEX_TIMEOUT, ready.wait_for(|ready| *ready)).await;
            next.start(call).await
        })
    }
}

/// Keeps the tools in sync with the index, for the lifetime of the server.
async fn refresh_tools(site: Site, source: Weak<ItemSource>, sender: watch::Sender<bool>) {
    let mut known: Option<Vec<RouteEndpoint>> = None;
    let mut retry = RETRY_DELAY;
    loop {
        let read = read_index(&site).await;
        let Some(source) = source.upgrade() else { return };
        let wait = match read {
            Ok(endpoints) => {
                if known.as_ref() != Some(&endpoints) {
                    publish_tools(&endpoints, &site, &source);
                }
                known = Some(endpoints);
                retry = RETRY_DELAY;
                REFRESH_INTERVAL
            }
            Err(error) => {
                let reason = error.to_message(false);
                tracing::warn!(%reason, "cannot read the routes of the site; the tools are unchanged");
                retry = (retry * 2).min(REFRESH_INTERVAL);
                retry
            }
        };
        drop(source);
        sender.send_replace(true);
        tokio::time::sleep(wait).await;
    }
}

/// Replaces the published tools. An existing tool of the same name, such as a curated one, stays.
fn publish_tools(endpoints: &[RouteEndpoint], site: &Site, source: &ItemSource) {
    let names = names::tool_names(endpoints);
    let tools =
        names.iter().zip(endpoints).map(|(name, endpoint)| build_tool(name, endpoint, site));
    for name in source.set_tools(tools.collect()) {
        tracing::info!("the route of `{name}` is excluded: another tool has this name");
    }
    source.announce(Change::List(ListKind::Tools));
}

/// The endpoints that the site offers and the configuration allows.
async fn read_index(site: &Site) -> Result<Vec<RouteEndpoint>, SiteError> {
    let routes = &site.inner.settings.routes;
    let mut endpoints = Vec::new();
    let mut indexes: BTreeSet<String> = BTreeSet::new();
    for pattern in routes.read.iter().chain(&routes.write) {
        let namespace: Vec<&str> = pattern.split('/').take(2).collect();
        // A namespace has its own index, which is a fraction of the whole.
        let is_plain = namespace.len() == 2 && !namespace.contains(&"*");
        indexes.insert(if is_plain { format!("/{}", namespace.join("/")) } else { "/".to_owned() });
    }
    if indexes.contains("/") {
        indexes = BTreeSet::from(["/".to_owned()]);
    }
    for index in indexes {
        let response = site.request(None, &SiteRequest::get(index)).await?;
        endpoints.extend(index::allowed_endpoints(&response.body, routes));
    }
    if endpoints.len() > MAX_TOOLS {
        let all = endpoints.len();
        tracing::warn!(
            "{all} routes are allowed as tools; only the first {MAX_TOOLS} become tools; allow fewer"
        );
        endpoints.truncate(MAX_TOOLS);
    }
    Ok(endpoints)
}

fn build_tool(name: &str, endpoint: &RouteEndpoint, site: &Site) -> Tool {
    let method = http_method(endpoint.verb);
    let about = format!("{method} /{} of the WordPress site.", endpoint.template());
    let (verb, schema) = (endpoint.verb, Raw::from_value(&endpoint.schema));
    let shared = Arc::new((endpoint.clone(), site.clone()));
    let run = move |arguments: Value, context: Context| -> BoxFuture<'static, _> {
        let shared = Arc::clone(&shared);
        Box::pin(async move { call_as_principal(&shared.0, &shared.1, arguments, &context).await })
    };
    Tool::raw(name, &about, schema, run).hints(|hints| {
        hints.read_only_hint = Some(verb == RouteAction::Read);
        hints.destructive_hint = (verb != RouteAction::Read).then_some(verb == RouteAction::Delete);
    })
}

fn http_method(verb: RouteAction) -> Method {
    match verb {
        RouteAction::Read => Method::GET,
        RouteAction::Create => Method::POST,
        RouteAction::Update => Method::PUT,
        RouteAction::Delete => Method::DELETE,
    }
}

async fn call_as_principal(
    endpoint: &RouteEndpoint,
    site: &Site,
    arguments: Value,
    context: &Context,
) -> Result<ToolResult, ToolError> {
    let Value::Object(arguments) = arguments else {
        return Err(ToolError::failed("no arguments"));
    };
    let user = site.user_for(context.principal().id()).await?;
    call_as_user(endpoint, site, &user, arguments).await
}

async fn call_as_user(
    endpoint: &RouteEndpoint,
    site: &Site,
    user: &SiteUser,
    mut arguments: Map<String, Value>,
) -> Result<ToolResult, ToolError> {
    let page = arguments.get("page").and_then(Value::as_u64).unwrap_or(1);
    let route = fill_route(endpoint, &mut arguments)?;
    if endpoint.verb == RouteAction::Delete && write_guard::deletes_user(&route, user.id) {
        return Err(ToolError::failed(write_guard::OWN_ACCOUNT_ERROR));
    }
    let is_lost = endpoint.verb != RouteAction::Read
        && write_guard::is_platform_route(&route)
        && !site.is_login_visible(user).await;
    if is_lost {
        return Err(ToolError::failed(write_guard::LATE_AUTH_ERROR));
    }
    if endpoint.verb == RouteAction::Update {
        keep_author(site, user, &route, &mut arguments).await?;
    }
    let request = SiteRequest::new(http_method(endpoint.verb), route);
    let request = match endpoint.verb {
        RouteAction::Create | RouteAction::Update => {
            request.with_body(Value::Object(arguments.clone()))
        }
        RouteAction::Read | RouteAction::Delete => {
            arguments.iter().fold(request, |request, (key, value)| match value {
                Value::String(text) => request.with_query(key, text),
                Value::Array(items) => {
                    items.iter().fold(request, |request, item| match item.as_str() {
                        Some(text) => request.with_query(&format!("{key}[]"), text),
                        None => request.with_query(&format!("{key}[]"), item),
                    })
                }
                other => request.with_query(key, other),
            })
        }
    };
    let result = site.request(Some(&user.credentials), &request).await;
    let response = result.map_err(|error| {
        if matches!(&error, SiteError::Refused(refusal) if refusal.status == 401) {
            site.inner.users.forget(user);
        }
        ToolError::failed(error.to_message(request.is_write()))
    })?;
    let response =
        verify::verify_write(site, user, endpoint, &request, &arguments, response).await?;
    Ok(tool_result::to_tool_result(response, page))
}

/// The route with the values of its arguments, which are removed from the others.
fn fill_route(
    endpoint: &RouteEndpoint,
    arguments: &mut Map<String, Value>,
) -> Result<String, ToolError> {
    let mut route = String::new();
    for part in &endpoint.parts {
        route.push('/');
        match part {
            RoutePart::Text(text) => route.push_str(text),
            RoutePart::Argument { name, .. } => {
                let value = match arguments.remove(name) {
                    Some(Value::String(text)) => text,
                    Some(other) => other.to_string(),
                    None => String::new(),
                };
                // These would address another route.
                if ["", ".", ".."].contains(&value.as_str()) || value.contains(['/', '\\']) {
                    return Err(ToolError::failed(format!("`{name}` is not valid in a route")));
                }
                percent_encode(&value, &mut route);
            }
        }
    }
    Ok(route)
}

/// Adds the author to the update of a feed post, if the call does not name one: an update without the author would make
/// the caller the author.
async fn keep_author(
    site: &Site,
    user: &SiteUser,
    route: &str,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    if !write_guard::is_activity_route(route) || arguments.contains_key("user_id") {
        return Ok(());
    }
    let request = SiteRequest::get(route).with_query("_fields", "id,user_id");
    let post = site.request(Some(&user.credentials), &request).await;
    let post = post.map_err(|error| ToolError::failed(error.to_message(false)))?.body;
    let author = post["user_id"].as_u64().or_else(|| post["user_id"].as_str()?.parse().ok());
    let Some(author) = author else {
        return Err(ToolError::failed(
            "the site does not return the author of this item, so an update could change the \
                author; nothing was changed",
        ));
    };
    arguments.insert("user_id".to_owned(), json!(author));
    Ok(())
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
            RoutePart::Text("wp".to_owned()),
            RoutePart::Argument { name: "slug".to_owned(), is_number: false },
        ];
        let endpoint = RouteEndpoint { verb: RouteAction::Read, parts, schema: Value::Null };
        let at =
            |slug: Value| fill_route(&endpoint, &mut Map::from_iter([("slug".to_owned(), slug)]));
        assert_eq!(at(json!("a b?c#d")).unwrap(), "/wp/a%20b%3Fc%23d");
        assert_eq!(at(json!(7)).unwrap(), "/wp/7");
        for invalid in ["", ".", "..", "../users", "a/b", "a\\b"] {
            assert!(at(json!(invalid)).is_err(), "{invalid}");
        }
    }
}
