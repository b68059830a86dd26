//! Groups and their members.

pub(crate) mod group_forum;
pub(crate) mod invitations;
pub(crate) mod ranks;

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Value, json};

use super::spec::{
    FixedValue, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use super::tool_call::ToolCall;
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::entities::GROUP;

/// Maximum number of pages, of a hundred banned members each, that are searched.
const MAX_PAGES: u64 = 10;
const STATUS: &[&str] = &["public", "private", "hidden"];
const ROLES: &[&str] = &["admin", "mod", "member", "banned"];
const ACTIONS: SiteArgumentType = SiteArgumentType::Choice(&["promote", "demote", "ban", "unban"]);

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_groups",
        "/buddyboss/v1/groups",
        "Group",
        "List groups, also hidden ones, with optional filtering.",
    )
    .with_arguments(&[
        PAGE,
        PER_PAGE,
        optional("search", SiteArgumentType::Text, "Search groups by name or description"),
        optional("status", SiteArgumentType::Choices(STATUS), "Only groups of these kinds"),
        optional("user_id", SiteArgumentType::Id, "Only groups of this member"),
        optional("group_type", SiteArgumentType::Text, "Only groups of this type"),
        optional(
            "type",
            SiteArgumentType::Choice(&["active", "newest", "alphabetical", "random", "popular"]),
            "Order (default: active)",
        ),
    ])
    .with_custom_run(list),
    tool(Verb::Get, "buddyboss_get_group", "/buddyboss/v1/groups/{id}", "Group", "Get one group.")
        .with_arguments(&[required("id", SiteArgumentType::Id, "Group ID")]),
    tool(
        Verb::Post,
        "buddyboss_create_group",
        "/buddyboss/v1/groups",
        "Group",
        "Create a group. You become its organizer.",
    )
    .with_arguments(&[
        required("name", SiteArgumentType::Text, "Name of the group"),
        optional("description", SiteArgumentType::Text, "What the group is about")
            .with_default(FixedValue::Text("")),
        optional("status", SiteArgumentType::Choice(STATUS), "Who sees it (default: public)"),
        optional("enable_forum", SiteArgumentType::Flag, "Whether it has a forum").not_sent(),
        optional("parent_id", SiteArgumentType::Id, "ID of the group that it belongs to")
            .naming(&GROUP),
    ])
    .with_fixed_values(&[("creator_id", FixedValue::CallerId)])
    .with_custom_run(group_forum::create_group),
    tool(
        Verb::Put,
        "buddyboss_update_group",
        "/buddyboss/v1/groups/{id}",
        "Group",
        "Change a group.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Group ID"),
        optional("name", SiteArgumentType::Text, "Name of the group"),
        optional("description", SiteArgumentType::Text, "What the group is about"),
        optional("status", SiteArgumentType::Choice(STATUS), "Who sees it"),
        optional("enable_forum", SiteArgumentType::Flag, "Whether it has a forum").not_sent(),
        optional("parent_id", SiteArgumentType::Id, "ID of the group that it belongs to")
            .naming(&GROUP),
    ])
    .with_custom_run(group_forum::update_group),
    tool(
        Verb::Delete,
        "buddyboss_delete_group",
        "/buddyboss/v1/groups/{id}",
        "Group",
        "Delete a group permanently.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Group ID"),
        optional("delete_forum", SiteArgumentType::Flag, "Whether its forum is deleted too")
            .sent_as("delete_group_forum"),
    ]),
    tool(
        Verb::Get,
        "buddyboss_list_group_members",
        "/buddyboss/v1/groups/{group_id}/members",
        "Group",
        "List the members of a group, its organizers included.",
    )
    .with_arguments(&[
        required("group_id", SiteArgumentType::Id, "Group ID"),
        PAGE,
        PER_PAGE,
        optional("search", SiteArgumentType::Text, "Search members by name"),
        optional(
            "roles",
            SiteArgumentType::Choices(ROLES),
            "Only members with these roles in the group",
        ),
    ])
    .with_fixed_values(&[("exclude_admins", FixedValue::Flag(false))])
    .with_custom_run(list_members),
    tool(
        Verb::Post,
        "buddyboss_add_group_member",
        "/buddyboss/v1/groups/{group_id}/members",
        "Member",
        "Add a member to a group.",
    )
    .with_arguments(&[
        required("group_id", SiteArgumentType::Id, "Group ID"),
        required("user_id", SiteArgumentType::Id, "Member ID"),
        optional(
            "role",
            SiteArgumentType::Choice(&["member", "mod", "admin"]),
            "Role in the group (default: member)",
        )
        .not_sent(),
    ])
    .with_custom_run(add_member),
    tool(
        Verb::Put,
        "buddyboss_update_group_member",
        "/buddyboss/v1/groups/{group_id}/members/{user_id}",
        "Member",
        "Promote, demote, ban or unban a member of a group.",
    )
    .with_arguments(&[
        required("group_id", SiteArgumentType::Id, "Group ID"),
        required("user_id", SiteArgumentType::Id, "Member ID"),
        required("action", ACTIONS, "What to do"),
        optional(
            "role",
            SiteArgumentType::Choice(&["member", "mod", "admin"]),
            "Role to promote or demote to",
        ),
    ])
    .destructive()
    .with_custom_run(change_member),
    tool(
        Verb::Delete,
        "buddyboss_remove_group_member",
        "/buddyboss/v1/groups/{group_id}/members/{user_id}",
        "Member",
        "Remove a member from a group.",
    )
    .with_arguments(&[
        required("group_id", SiteArgumentType::Id, "Group ID"),
        required("user_id", SiteArgumentType::Id, "Member ID"),
    ]),
];

/// Hidden groups are listed only on request, even for administrators.
fn list<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let status = call.arguments.get("status").and_then(Value::as_array);
        let shows_hidden = status.is_none_or(|words| words.iter().any(|word| word == "hidden"));
        let request = call.build_request();
        call.request(&if shows_hidden { request.with_query("show_hidden", true) } else { request })
            .await
    })
}

/// Banned members are listed only on request.
fn list_members<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let roles = call.arguments.get("roles").and_then(Value::as_array);
        let shows_banned = roles.is_some_and(|words| words.iter().any(|word| word == "banned"));
        let request = call.build_request();
        call.request(&if shows_banned {
            request.with_query("exclude_banned", false)
        } else {
            request
        })
        .await
    })
}

/// For a user who is not in the group, the platform reports success and stores an incomplete membership, so the
/// membership is checked first.
fn change_member<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        ranks::check_has_effect(call)?;
        let (group, user) = (call.number("group_id"), call.number("user_id"));
        let (group, user) = (group.unwrap_or_default(), user.unwrap_or_default());
        let exists = match call.text("action") {
            Some("unban") => is_banned(call, group, user).await?,
            _ => is_member(call, group, user).await?,
        };
        match exists {
            true => ranks::change_and_verify(call).await,
            false => {
                let message =
                    format!("Member with ID {user} is not such a member of group {group}");
                Err(ToolError::failed(format!("{message}; nothing was changed")))
            }
        }
    })
}

/// Whether a user is in a group.
pub(super) async fn is_member(
    call: &ToolCall<'_>,
    group: u64,
    user: u64,
) -> Result<bool, ToolError> {
    let groups = SiteRequest::get("/buddyboss/v1/groups").with_query("user_id", user);
    let groups = groups.with_query("include", group).with_query("show_hidden", true);
    let value = call.request(&groups.with_query("_fields", "id")).await?.body;
    Ok(value.as_array().is_some_and(|groups| !groups.is_empty()))
}

async fn is_banned(call: &ToolCall<'_>, group: u64, user: u64) -> Result<bool, ToolError> {
    for page in 1..=MAX_PAGES {
        let banned = SiteRequest::get(format!("/buddyboss/v1/groups/{group}/members"));
        let banned = banned.with_query("roles", "banned").with_query("exclude_banned", false);
        let banned =
            banned.with_query("per_page", 100).with_query("page", page).with_query("_fields", "id");
        let response = call.request(&banned).await?;
        let mut found = response.body.as_array().into_iter().flatten();
        if found.any(|member| member["id"] == user) {
            return Ok(true);
        }
        if response.totals.is_none_or(|(_, pages)| page >= pages) {
            break;
        }
    }
    Ok(false)
}

/// The platform ignores the role of a new member, so it is set afterwards.
fn add_member<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let added = call.send_single_request().await?;
        let Some(role) = call.text("role").filter(|role| *role != "member") else {
            return Ok(added);
        };
        let route = call.path("/buddyboss/v1/groups/{group_id}/members/{user_id}");
        let promoted = SiteRequest::new(Method::PUT, route);
        let promoted = promoted.with_body(json!({"action": "promote", "role": role}));
        call.request(&promoted).await.map_err(|error| match error {
            ToolError::Failed(reason) => {
                ToolError::failed(format!("the member was added, but not as {role}: {reason}"))
            }
            other => other,
        })
    })
}
