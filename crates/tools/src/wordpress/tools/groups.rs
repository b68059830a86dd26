//! Groups and who is in them.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Value, json};

use super::errand::Errand;
use super::forum;
use super::ranks;
use super::spec::{Given, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use super::things::GROUP;
use crate::wordpress::site::{Answered, Asked};

/// How many pages of a hundred banned members are looked through.
const MOST_PAGES: u64 = 10;
const STATUS: &[&str] = &["public", "private", "hidden"];
const ROLES: &[&str] = &["admin", "mod", "member", "banned"];
const ACTIONS: Kind = Kind::Choice(&["promote", "demote", "ban", "unban"]);

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_groups",
        "/buddyboss/v1/groups",
        "Group",
        "List groups, also hidden ones, with optional filtering.",
    )
    .takes(&[
        PAGE,
        PER_PAGE,
        may("search", Kind::Text, "Search groups by name or description"),
        may("status", Kind::Choices(STATUS), "Only groups of these kinds"),
        may("user_id", Kind::Id, "Only groups of this member"),
        may("group_type", Kind::Text, "Only groups of this type"),
        may(
            "type",
            Kind::Choice(&["active", "newest", "alphabetical", "random", "popular"]),
            "Order (default: active)",
        ),
    ])
    .by(list),
    tool(Verb::Get, "buddyboss_get_group", "/buddyboss/v1/groups/{id}", "Group", "Get one group.")
        .takes(&[must("id", Kind::Id, "Group ID")]),
    tool(
        Verb::Post,
        "buddyboss_create_group",
        "/buddyboss/v1/groups",
        "Group",
        "Create a group, whose organizer you are.",
    )
    .takes(&[
        must("name", Kind::Text, "Name of the group"),
        may("description", Kind::Text, "What the group is about").or(Given::Text("")),
        may("status", Kind::Choice(STATUS), "Who sees it (default: public)"),
        may("enable_forum", Kind::Flag, "Whether it has a forum").kept(),
        may("parent_id", Kind::Id, "ID of the group that it belongs to").of(&GROUP),
    ])
    .sends(&[("creator_id", Given::Me)])
    .by(forum::create_group),
    tool(
        Verb::Put,
        "buddyboss_update_group",
        "/buddyboss/v1/groups/{id}",
        "Group",
        "Change a group.",
    )
    .takes(&[
        must("id", Kind::Id, "Group ID"),
        may("name", Kind::Text, "Name of the group"),
        may("description", Kind::Text, "What the group is about"),
        may("status", Kind::Choice(STATUS), "Who sees it"),
        may("enable_forum", Kind::Flag, "Whether it has a forum").kept(),
        may("parent_id", Kind::Id, "ID of the group that it belongs to").of(&GROUP),
    ])
    .by(forum::update_group),
    tool(
        Verb::Delete,
        "buddyboss_delete_group",
        "/buddyboss/v1/groups/{id}",
        "Group",
        "Delete a group for good.",
    )
    .takes(&[
        must("id", Kind::Id, "Group ID"),
        may("delete_forum", Kind::Flag, "Whether its forum is deleted too")
            .sent_as("delete_group_forum"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_list_group_members",
        "/buddyboss/v1/groups/{group_id}/members",
        "Group",
        "List the members of a group, its organizers included.",
    )
    .takes(&[
        must("group_id", Kind::Id, "Group ID"),
        PAGE,
        PER_PAGE,
        may("search", Kind::Text, "Search members by name"),
        may("roles", Kind::Choices(ROLES), "Only members with these roles in the group"),
    ])
    .sends(&[("exclude_admins", Given::Flag(false))])
    .by(list_members),
    tool(
        Verb::Post,
        "buddyboss_add_group_member",
        "/buddyboss/v1/groups/{group_id}/members",
        "Member",
        "Add a member to a group.",
    )
    .takes(&[
        must("group_id", Kind::Id, "Group ID"),
        must("user_id", Kind::Id, "Member ID"),
        may(
            "role",
            Kind::Choice(&["member", "mod", "admin"]),
            "Role in the group (default: member)",
        )
        .kept(),
    ])
    .by(add_member),
    tool(
        Verb::Put,
        "buddyboss_update_group_member",
        "/buddyboss/v1/groups/{group_id}/members/{user_id}",
        "Member",
        "Promote, demote, ban or unban a member of a group.",
    )
    .takes(&[
        must("group_id", Kind::Id, "Group ID"),
        must("user_id", Kind::Id, "Member ID"),
        must("action", ACTIONS, "What to do"),
        may("role", Kind::Choice(&["member", "mod", "admin"]), "Role to promote or demote to"),
    ])
    .destroys()
    .by(change_member),
    tool(
        Verb::Delete,
        "buddyboss_remove_group_member",
        "/buddyboss/v1/groups/{group_id}/members/{user_id}",
        "Member",
        "Remove a member from a group.",
    )
    .takes(&[must("group_id", Kind::Id, "Group ID"), must("user_id", Kind::Id, "Member ID")]),
];

/// Hidden groups are listed only on demand, also to administrators.
fn list<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let status = errand.arguments.get("status").and_then(Value::as_array);
        let shows_hidden = status.is_none_or(|words| words.iter().any(|word| word == "hidden"));
        let asked = errand.request();
        errand.ask(&if shows_hidden { asked.with("show_hidden", true) } else { asked }).await
    })
}

/// Banned members are listed only on demand.
fn list_members<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let roles = errand.arguments.get("roles").and_then(Value::as_array);
        let shows_banned = roles.is_some_and(|words| words.iter().any(|word| word == "banned"));
        let asked = errand.request();
        errand.ask(&if shows_banned { asked.with("exclude_banned", false) } else { asked }).await
    })
}

/// Of somebody who is not in the group the platform says that it is done, and stores half a membership; so it is
/// looked first.
fn change_member<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        ranks::check(errand)?;
        let (group, user) = (errand.number("group_id"), errand.number("user_id"));
        let (group, user) = (group.unwrap_or_default(), user.unwrap_or_default());
        let is_there = match errand.text("action") {
            Some("unban") => is_banned(errand, group, user).await?,
            _ => is_member(errand, group, user).await?,
        };
        match is_there {
            true => ranks::change(errand).await,
            false => {
                let what = format!("Member with ID {user} is not such a member of group {group}");
                Err(ToolError::failed(format!("{what}; nothing was changed")))
            }
        }
    })
}

/// Whether somebody is in a group.
pub(super) async fn is_member(
    errand: &Errand<'_>,
    group: u64,
    user: u64,
) -> Result<bool, ToolError> {
    let groups = Asked::get("/buddyboss/v1/groups").with("user_id", user);
    let groups = groups.with("include", group).with("show_hidden", true);
    let found = errand.ask(&groups.with("_fields", "id")).await?.body;
    Ok(found.as_array().is_some_and(|groups| !groups.is_empty()))
}

async fn is_banned(errand: &Errand<'_>, group: u64, user: u64) -> Result<bool, ToolError> {
    for page in 1..=MOST_PAGES {
        let banned = Asked::get(format!("/buddyboss/v1/groups/{group}/members"));
        let banned = banned.with("roles", "banned").with("exclude_banned", false);
        let banned = banned.with("per_page", 100).with("page", page).with("_fields", "id");
        let answered = errand.ask(&banned).await?;
        let mut found = answered.body.as_array().into_iter().flatten();
        if found.any(|member| member["id"] == user) {
            return Ok(true);
        }
        if answered.extent.is_none_or(|(_, pages)| page >= pages) {
            break;
        }
    }
    Ok(false)
}

/// The platform ignores the role of a new member, so that it is given afterwards.
fn add_member<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let added = errand.plain().await?;
        let Some(role) = errand.text("role").filter(|role| *role != "member") else {
            return Ok(added);
        };
        let route = errand.path("/buddyboss/v1/groups/{group_id}/members/{user_id}");
        let promoted = Asked::new(Method::PUT, route);
        let promoted = promoted.body(json!({"action": "promote", "role": role}));
        errand.ask(&promoted).await.map_err(|error| match error {
            ToolError::Failed(why) => {
                ToolError::failed(format!("the member was added, but not as {role}: {why}"))
            }
            other => other,
        })
    })
}
