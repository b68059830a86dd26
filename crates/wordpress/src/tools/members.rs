//! Members. They are created, changed and deleted as WordPress users: the platform's own routes lose the email address
//! of a new member and the new owner of a deleted member's content.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::spec::{FixedValue, PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool};
use super::tool_call::ToolCall;
use crate::site::site_error::SiteError;
use crate::site::{SiteRequest, SiteResponse};
use crate::write_guard::OWN_ACCOUNT_ERROR;

const TYPES: SiteArgumentType =
    SiteArgumentType::Choice(&["active", "newest", "alphabetical", "random", "online", "popular"]);
const ID: SiteArgumentType = SiteArgumentType::Id;
/// Maximum number of pages, of a hundred users each, that are searched for a role.
const MAX_PAGES: u64 = 10;

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_members",
        "/buddyboss/v1/members",
        "Member",
        "List all members with optional filtering by role, status, or search query.",
    )
    .with_arguments(&[
        PAGE,
        optional("per_page", SiteArgumentType::PerPage, "Members per page (default: 20, max: 100)")
            .with_default(FixedValue::Number(20)),
        optional("search", SiteArgumentType::Text, "Search members by name or username"),
        optional("type", TYPES, "Which members, and in which order (default: alphabetical)")
            .with_default(FixedValue::Text("alphabetical")),
        optional("role", SiteArgumentType::Text, "Only members with this WordPress role")
            .not_sent(),
        optional("member_type", SiteArgumentType::Texts, "Only members of these member types"),
        optional("include", SiteArgumentType::Ids, "Only members with these IDs").not_sent(),
        optional("exclude", SiteArgumentType::Ids, "No members with these IDs"),
        optional(
            "scope",
            SiteArgumentType::Text,
            "Limit to a scope, such as following or followers",
        ),
    ])
    .with_custom_run(list),
    tool(
        Verb::Get,
        "buddyboss_get_member",
        "/buddyboss/v1/members/{id}",
        "Member",
        "Get one member with profile data and e-mail address.",
    )
    .with_arguments(&[required("id", ID, "Member ID")])
    .with_fixed_values(&[("context", FixedValue::Text("edit"))])
    .with_custom_run(get),
    tool(
        Verb::Post,
        "buddyboss_create_member",
        "/wp/v2/users",
        "Member",
        "Create a member. The password is sent to the site and not shown again.",
    )
    .with_arguments(&[
        required("username", SiteArgumentType::Text, "Name to log in with"),
        required("email", SiteArgumentType::Text, "E-mail address"),
        required("password", SiteArgumentType::Text, "Password to log in with"),
        optional("name", SiteArgumentType::Text, "Name that others see"),
        optional("roles", SiteArgumentType::Texts, "WordPress roles"),
    ])
    .with_fixed_values(&[("context", FixedValue::Text("edit"))]),
    tool(
        Verb::Put,
        "buddyboss_update_member",
        "/wp/v2/users/{id}",
        "Member",
        "Change the name, e-mail address or member type of a member.",
    )
    .with_arguments(&[
        required("id", ID, "Member ID"),
        optional("name", SiteArgumentType::Text, "Name that others see"),
        optional("email", SiteArgumentType::Text, "E-mail address"),
        optional("member_type", SiteArgumentType::Text, "Member type").not_sent(),
    ])
    .with_custom_run(update),
    tool(
        Verb::Delete,
        "buddyboss_delete_member",
        "/wp/v2/users/{id}",
        "Member",
        "Delete a member permanently. Posts are reassigned to the member in reassign, or deleted too.",
    )
    .with_arguments(&[
        required("id", ID, "Member ID"),
        optional("reassign", ID, "ID of the member who gets the posts")
            .with_default(FixedValue::Flag(false)),
    ])
    .with_fixed_values(&[("force", FixedValue::Flag(true))])
    .with_custom_run(delete),
];

/// WordPress finds the members of a role, which are then requested from the platform.
fn list<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let named: Option<Vec<u64>> = call
            .arguments
            .get("include")
            .and_then(Value::as_array)
            .map(|ids| ids.iter().filter_map(Value::as_u64).collect());
        let include = match call.text("role") {
            None => named,
            Some(role) => {
                let is_named = |id: &u64| named.as_ref().is_none_or(|named| named.contains(id));
                Some(users_with_role(call, role).await?.into_iter().filter(is_named).collect())
            }
        };
        match include {
            None => call.send_single_request().await,
            // No members: an empty list would be no condition at all.
            Some(ids) if ids.is_empty() => Ok(SiteResponse::from_display(json!([]).into())),
            Some(ids) => {
                let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
                call.request(&call.build_request().with_query("include", ids.join(","))).await
            }
        }
    })
}

/// The ids of all users with a role.
async fn users_with_role(call: &ToolCall<'_>, role: &str) -> Result<Vec<u64>, ToolError> {
    let mut ids = Vec::new();
    for page in 1..=MAX_PAGES {
        let users =
            SiteRequest::get("/wp/v2/users").with_query("roles", role).with_query("per_page", 100);
        let users = users
            .with_query("page", page)
            .with_query("context", "edit")
            .with_query("_fields", "id");
        let response = call.request(&users).await?;
        let found = response.body.as_array().into_iter().flatten();
        ids.extend(found.filter_map(|user| user["id"].as_u64()));
        if response.totals.is_none_or(|(_, pages)| page >= pages) {
            return Ok(ids);
        }
    }
    let max = MAX_PAGES * 100;
    Err(ToolError::failed(format!(
        "more than {max} members have the role `{role}`: search instead"
    )))
}

/// The platform does not return the email address; WordPress does. A caller who may not edit the member gets the public
/// view.
fn get<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let mut member = match call.try_request(&call.build_request()).await {
            Err(SiteError::Refused(refusal)) if refusal.status == 403 => {
                call.request(&SiteRequest::get(call.path(call.spec.route))).await?
            }
            Err(error) => return Err(call.to_tool_error(error, false).await),
            Ok(member) => member,
        };
        let user = SiteRequest::get(call.path("/wp/v2/users/{id}")).with_query("context", "edit");
        if let Ok(user) = call.try_request(&user.with_query("_fields", "email")).await {
            member.display.insert("email", user.body["email"].clone().into());
        }
        Ok(member)
    })
}

/// Callers never delete themselves: the site could lose its only administrator.
fn delete<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let (id, heir) = (call.number("id"), call.number("reassign"));
        if id == Some(call.user.id) {
            return Err(ToolError::failed(OWN_ACCOUNT_ERROR));
        }
        if heir.is_some() && heir == id {
            return Err(ToolError::failed(
                "`reassign` is the member who is deleted; choose another one",
            ));
        }
        call.send_single_request().await
    })
}

/// The platform ignores an unknown member type, so the result is verified.
fn update<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let user = call.build_request();
        let is_empty = user.body.as_ref().and_then(Value::as_object).is_none_or(Map::is_empty);
        let Some(expected) = call.text("member_type") else {
            if is_empty {
                return Err(ToolError::failed(
                    "nothing to change: give name, email or member_type",
                ));
            }
            return call.request(&user).await;
        };
        if !is_empty {
            call.request(&user).await?;
        }
        let member = SiteRequest::new(Method::PUT, call.path("/buddyboss/v1/members/{id}"));
        let member = call
            .request(&member.with_body(json!({"types": expected, "member_type": expected})))
            .await;
        let member = member.map_err(|error| partial_update_error(call, error))?;
        let types = &member.body["member_types"];
        let exists = types.get(expected).is_some()
            || types.as_array().is_some_and(|types| types.iter().any(|value| *value == expected));
        match exists {
            true => Ok(member),
            false => {
                let reason = format!("the site has no member type `{expected}`");
                Err(partial_update_error(call, ToolError::failed(reason)))
            }
        }
    })
}

/// The error for an unchanged member type, with the changes that were made.
fn partial_update_error(call: &ToolCall<'_>, error: ToolError) -> ToolError {
    let names = ["name", "email"].iter().filter(|name| call.arguments.contains_key(**name));
    let changed: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match error {
        ToolError::Failed(reason) if !changed.is_empty() => {
            let changed = changed.join(" and ");
            ToolError::failed(format!(
                "{changed} changed as asked, but `member_type` did not: {reason}"
            ))
        }
        other => other,
    }
}
