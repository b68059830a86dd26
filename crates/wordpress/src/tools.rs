//! The pack `buddyboss-platform`: curated tools for the platform's routes, in selectable sets.

mod activity;
mod administration;
mod forums;
mod friends;
mod groups;
mod media;
mod members;
mod messages;
mod moderation;
mod notifications;
mod spec;
mod tool_call;
mod xprofile;

use std::sync::Arc;

use creole::proto::wire::Raw;
use creole::{BoxFuture, Context, Server, Tool, ToolError, ToolResult};
use serde_json::Value;

use self::spec::{ToolSpec, Verb};
use super::site::Site;
use crate::login::users::SiteUser;

/// The sets of tools, each with its phase.
pub const SETS: &[(&str, &str)] = &[
    ("members", "phase-1"),
    ("groups", "phase-1"),
    ("activity", "phase-1"),
    ("messages", "phase-1"),
    ("friends", "phase-1"),
    ("notifications", "phase-1"),
    ("xprofile", "phase-1"),
    ("forums", "phase-2"),
    ("moderation", "phase-2"),
    ("invitations", "phase-2"),
    ("feed", "phase-2"),
    ("media", "phase-2"),
    ("administration", "phase-2"),
];

/// The phases: names for several sets at once.
pub const PHASES: &[&str] = &["phase-1", "phase-2"];

/// The tools of a set.
fn specs_of_set(set: &str) -> impl Iterator<Item = &'static ToolSpec> {
    let more = if set == "forums" { forums::topics::TOOLS } else { &[] };
    specs_of_module(set).iter().chain(more)
}

fn specs_of_module(set: &str) -> &'static [ToolSpec] {
    match set {
        "members" => members::TOOLS,
        "groups" => groups::TOOLS,
        "activity" => activity::TOOLS,
        "messages" => messages::TOOLS,
        "friends" => friends::TOOLS,
        "notifications" => notifications::TOOLS,
        "xprofile" => xprofile::TOOLS,
        "forums" => forums::TOOLS,
        "moderation" => moderation::TOOLS,
        "invitations" => groups::invitations::TOOLS,
        "feed" => activity::feed::TOOLS,
        "media" => media::TOOLS,
        "administration" => administration::TOOLS,
        _ => &[],
    }
}

/// Adds the pack: the tools of the sets that the site's settings name, directly or by phase.
pub(crate) fn add(server: Server, site: &Site) -> Server {
    let expected = &site.inner.settings.sets;
    let is_wanted = |names: [&str; 2]| expected.iter().any(|name| names.contains(&name.as_str()));
    let sets = SETS.iter().filter(|(set, phase)| is_wanted([set, phase]));
    sets.flat_map(|(set, _)| specs_of_set(set))
        .fold(server, |server, spec| server.tool(build_tool(spec, site)))
}

fn build_tool(spec: &'static ToolSpec, site: &Site) -> Tool {
    let site = Arc::new(site.clone());
    let run = move |arguments: Value, context: Context| -> BoxFuture<'static, _> {
        let site = Arc::clone(&site);
        Box::pin(async move { call_as_principal(spec, &site, arguments, &context).await })
    };
    let tool = Tool::raw(spec.name, spec.about, Raw::from_value(&spec.schema()), run);
    tool.hints(|hints| {
        hints.read_only_hint = Some(spec.verb == Verb::Get);
        hints.destructive_hint = (spec.verb != Verb::Get).then_some(spec.destructive);
        hints.idempotent_hint = (spec.verb == Verb::Put).then_some(true);
    })
}

async fn call_as_principal(
    spec: &'static ToolSpec,
    site: &Site,
    arguments: Value,
    context: &Context,
) -> Result<ToolResult, ToolError> {
    let user = site.user_for(context.principal().id()).await?;
    call_as_user(spec, site, &user, arguments).await
}

async fn call_as_user(
    spec: &'static ToolSpec,
    site: &Site,
    user: &SiteUser,
    arguments: Value,
) -> Result<ToolResult, ToolError> {
    let Value::Object(arguments) = arguments else { return Err(ToolError::failed("no arguments")) };
    let arguments =
        &tool_call::arguments::normalize(spec, &arguments).map_err(ToolError::failed)?;
    tool_call::ToolCall { spec, site, user, arguments }.run().await
}

/// Calls a tool by its name, for tests.
#[cfg(test)]
pub(super) async fn call(
    name: &str,
    site: &Site,
    user: &SiteUser,
    arguments: Value,
) -> Result<ToolResult, ToolError> {
    let spec =
        SETS.iter().flat_map(|(set, _)| specs_of_set(set)).find(|spec| spec.name == name).unwrap();
    let schema = creole::Schema::new(spec.schema().to_string());
    if let Err(violations) = schema.validate(&arguments) {
        return Err(ToolError::failed(format!("{violations:?}")));
    }
    call_as_user(spec, site, user, arguments).await
}

#[cfg(test)]
mod tests;
