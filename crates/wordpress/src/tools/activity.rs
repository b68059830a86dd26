//! The activity feed.

pub(crate) mod feed;

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Value, json};

use super::spec::{FixedValue, PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool};
use super::tool_call::{ToolCall, whole_number};
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::entities::GROUP;

const SCOPES: SiteArgumentType = SiteArgumentType::Choice(&[
    "just-me",
    "friends",
    "groups",
    "favorites",
    "mentions",
    "following",
]);
const PRIVACY: SiteArgumentType =
    SiteArgumentType::Choice(&["public", "loggedin", "onlyme", "friends"]);

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_activities",
        "/buddyboss/v1/activity",
        "Activity",
        "List activities, the newest first.",
    )
    .with_arguments(&[
        PAGE,
        optional("per_page", SiteArgumentType::PerPage, "Activities per page (default: 10, max: 100)")
            .with_default(FixedValue::Number(10)),
        optional("search", SiteArgumentType::Text, "Search activities by content"),
        optional("user_id", SiteArgumentType::Id, "Only activities of this member"),
        optional("group_id", SiteArgumentType::Id, "Only activities of this group").naming(&GROUP),
        optional("component", SiteArgumentType::Text, "Only activities of this component, such as groups"),
        optional("type", SiteArgumentType::Text, "Only activities of this type, such as activity_update"),
        optional("scope", SCOPES, "Limit to a scope"),
        optional("display_comments", SiteArgumentType::Choice(&["threaded", "stream"]), "How comments are listed"),
    ])
    .with_per_user_list()
    .with_custom_run(list),
    tool(
        Verb::Get,
        "buddyboss_get_activity",
        "/buddyboss/v1/activity/{id}",
        "Activity",
        "Get one activity.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Activity ID")]),
    tool(
        Verb::Post,
        "buddyboss_create_activity",
        "/buddyboss/v1/activity",
        "Activity",
        "Post an activity as yourself, to the site or to a group.",
    )
    .with_arguments(&[
        required("content", SiteArgumentType::Text, "What to post"),
        optional("title", SiteArgumentType::Text, "Title of the post, where the site has \
            titles").sent_as("post_title"),
        optional("group_id", SiteArgumentType::Id, "ID of the group to post in")
            .sent_as("primary_item_id")
            .naming(&GROUP),
        optional("privacy", PRIVACY, "Who sees it (default: public)"),
    ])
    .with_custom_run(create),
    tool(
        Verb::Put,
        "buddyboss_update_activity",
        "/buddyboss/v1/activity/{id}",
        "Activity",
        "Change the content of an activity, where the site allows that activities are edited.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Activity ID"), required("content", SiteArgumentType::Text, "New content")])
    .with_custom_run(update),
    tool(
        Verb::Delete,
        "buddyboss_delete_activity",
        "/buddyboss/v1/activity/{id}",
        "Activity",
        "Delete an activity permanently.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Activity ID")]),
    tool(
        Verb::Post,
        "buddyboss_favorite_activity",
        "/buddyboss/v1/activity/{id}/favorite",
        "Activity",
        "Mark an activity as a favorite, or remove the mark if it is one; `favorited` is the new state.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Activity ID")])
    .with_custom_run(favorite),
    tool(
        Verb::Get,
        "buddyboss_list_activity_comments",
        "/buddyboss/v1/activity/{id}/comment",
        "Activity",
        "List the comments on an activity.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Activity ID")])
    .require_visible_login(),
    tool(
        Verb::Post,
        "buddyboss_comment_activity",
        "/buddyboss/v1/activity/{id}/comment",
        "Activity",
        "Comment on an activity as yourself.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Activity ID"), required("content", SiteArgumentType::Text, "The comment")])
    .require_visible_login()
    .with_custom_run(comment),
];

/// The platform widens `just-me` to the whole feed unless the request names the user.
fn list<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let request = call.build_request();
        let is_own = call.text("scope") == Some("just-me") && call.number("user_id").is_none();
        call.request(&if is_own { request.with_query("user_id", call.user.id) } else { request })
            .await
    })
}

fn create<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let mut request = call.build_request();
        if let (Some(_), Some(body)) = (call.number("group_id"), &mut request.body) {
            body["component"] = json!("groups");
        }
        call.request(&request).await
    })
}

/// Without the author's id the platform makes the caller the author, so the author is read first and sent along.
fn update<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let route = call.path(call.spec.route);
        let before = call
            .request(&SiteRequest::get(&route).with_query("_fields", "id,user_id,post_title"))
            .await?;
        let Some(author) = whole_number(&before.body["user_id"]) else {
            return Err(ToolError::failed(
                "the site does not return the author of this activity, so an update could change the author; \
                 nothing was changed",
            ));
        };
        let mut body = json!({"content": call.arguments["content"], "user_id": author});
        // A site with post titles rejects an update without one.
        if let Some(title) = before.body["post_title"].as_str().filter(|title| !title.is_empty()) {
            body["post_title"] = json!(title);
        }
        let response = call.request(&SiteRequest::new(Method::PUT, route).with_body(body)).await?;
        match whole_number(&response.body["user_id"]) {
            Some(now) if now != author => Err(ToolError::failed(format!(
                "the content was changed, but the site changed the author from member {author} to member {now}"
            ))),
            _ => Ok(response),
        }
    })
}

/// A toggle: a second call undoes the first.
fn favorite<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let request = SiteRequest::new(Method::PUT, call.path(call.spec.route));
        call.request(&request).await
    })
}

/// The platform may report that it created a comment and store none; then there are no comments to show.
fn comment<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let response = call.send_single_request().await?;
        match response.body["comments"].as_array().is_some_and(|values| !values.is_empty()) {
            true => Ok(response),
            false if response.body["comments"].is_object() => Ok(response),
            false => Err(ToolError::failed(not_stored_message(&response.body))),
        }
    })
}

fn not_stored_message(body: &Value) -> String {
    let text =
        if body["created"] == true { "the site reported that it was created, but " } else { "" };
    format!("{text}nothing was stored")
}
