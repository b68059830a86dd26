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
fn list<'a>(errand: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let asked = errand.build_request();
        let is_own = errand.text("scope") == Some("just-me") && errand.number("user_id").is_none();
        errand
            .request(&if is_own { asked.with_query("user_id", errand.user.id) } else { asked })
            .await
    })
}

fn create<'a>(errand: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let mut asked = errand.build_request();
        if let (Some(_), Some(body)) = (errand.number("group_id"), &mut asked.body) {
            body["component"] = json!("groups");
        }
        errand.request(&asked).await
    })
}

/// Without the author's id the platform makes the caller the author, so the author is read first and sent along.
fn update<'a>(errand: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let route = errand.path(errand.spec.route);
        let before = errand
            .request(&SiteRequest::get(&route).with_query("_fields", "id,user_id,post_title"))
            .await?;
        let Some(author) = whole_number(&before.body["user_id"]) else {
            return Err(ToolError::failed(
                "the site does not return the author of this activity, so an update could change the author; \
                 nothing was changed",
            ));
        };
        let mut body = json!({"content": errand.arguments["content"], "user_id": author});
        // A site with post titles rejects an update without one.
        if let Some(title) = before.body["post_title"].as_str().filter(|title| !title.is_empty()) {
            body["post_title"] = json!(title);
        }
        let answered =
            errand.request(&SiteRequest::new(Method::PUT, route).with_body(body)).await?;
        match whole_number(&answered.body["user_id"]) {
            Some(now) if now != author => Err(ToolError::failed(format!(
                "the content was changed, but the site changed the author from member {author} to member {now}"
            ))),
            _ => Ok(answered),
        }
    })
}

/// A toggle: a second call undoes the first.
fn favorite<'a>(errand: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let asked = SiteRequest::new(Method::PUT, errand.path(errand.spec.route));
        errand.request(&asked).await
    })
}

/// The platform may report that it created a comment and store none; then there are no comments to show.
fn comment<'a>(errand: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let answered = errand.send_single_request().await?;
        match answered.body["comments"].as_array().is_some_and(|it| !it.is_empty()) {
            true => Ok(answered),
            false if answered.body["comments"].is_object() => Ok(answered),
            false => Err(ToolError::failed(not_stored_message(&answered.body))),
        }
    })
}

fn not_stored_message(body: &Value) -> String {
    let said =
        if body["created"] == true { "the site reported that it was created, but " } else { "" };
    format!("{said}nothing was stored")
}
