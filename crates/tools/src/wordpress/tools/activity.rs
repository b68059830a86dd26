//! The activity feed.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Value, json};

use super::errand::{Errand, whole_number};
use super::spec::{Given, Kind, PAGE, Spec, Verb, may, must, tool};
use super::things::GROUP;
use crate::wordpress::site::{Answered, Asked};

const SCOPES: Kind =
    Kind::Choice(&["just-me", "friends", "groups", "favorites", "mentions", "following"]);
const PRIVACY: Kind = Kind::Choice(&["public", "loggedin", "onlyme", "friends"]);

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_activities",
        "/buddyboss/v1/activity",
        "Activity",
        "List activities, the newest first.",
    )
    .takes(&[
        PAGE,
        may("per_page", Kind::PerPage, "Activities per page (default: 10, max: 100)")
            .or(Given::Number(10)),
        may("search", Kind::Text, "Search activities by content"),
        may("user_id", Kind::Id, "Only activities of this member"),
        may("group_id", Kind::Id, "Only activities of this group").of(&GROUP),
        may("component", Kind::Text, "Only activities of this component, such as groups"),
        may("type", Kind::Text, "Only activities of this type, such as activity_update"),
        may("scope", SCOPES, "Limit to a scope"),
        may("display_comments", Kind::Choice(&["threaded", "stream"]), "How comments are listed"),
    ])
    .own()
    .by(list),
    tool(
        Verb::Get,
        "buddyboss_get_activity",
        "/buddyboss/v1/activity/{id}",
        "Activity",
        "Get one activity.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID")]),
    tool(
        Verb::Post,
        "buddyboss_create_activity",
        "/buddyboss/v1/activity",
        "Activity",
        "Post an activity as yourself, to the site or to a group.",
    )
    .takes(&[
        must("content", Kind::Text, "What to post"),
        may("title", Kind::Text, "Title of the post, where the site has titles").sent_as("post_title"),
        may("group_id", Kind::Id, "ID of the group to post in")
            .sent_as("primary_item_id")
            .of(&GROUP),
        may("privacy", PRIVACY, "Who sees it (default: public)"),
    ])
    .by(create),
    tool(
        Verb::Put,
        "buddyboss_update_activity",
        "/buddyboss/v1/activity/{id}",
        "Activity",
        "Change the content of an activity, where the site allows that activities are edited.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID"), must("content", Kind::Text, "New content")])
    .by(update),
    tool(
        Verb::Delete,
        "buddyboss_delete_activity",
        "/buddyboss/v1/activity/{id}",
        "Activity",
        "Delete an activity for good.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID")]),
    tool(
        Verb::Post,
        "buddyboss_favorite_activity",
        "/buddyboss/v1/activity/{id}/favorite",
        "Activity",
        "Mark an activity as a favorite, or take the mark back if it is one; `favorited` tells which.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID")])
    .by(favorite),
    tool(
        Verb::Get,
        "buddyboss_list_activity_comments",
        "/buddyboss/v1/activity/{id}/comment",
        "Activity",
        "List the comments on an activity.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID")])
    .early(),
    tool(
        Verb::Post,
        "buddyboss_comment_activity",
        "/buddyboss/v1/activity/{id}/comment",
        "Activity",
        "Comment on an activity as yourself.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID"), must("content", Kind::Text, "The comment")])
    .early()
    .by(comment),
];

/// The platform widens `just-me` to the whole feed unless it is told whose activities are meant.
fn list<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let asked = errand.request();
        let is_own = errand.text("scope") == Some("just-me") && errand.number("user_id").is_none();
        errand.ask(&if is_own { asked.with("user_id", errand.visitor.id) } else { asked }).await
    })
}

fn create<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let mut asked = errand.request();
        if let (Some(_), Some(body)) = (errand.number("group_id"), &mut asked.body) {
            body["component"] = json!("groups");
        }
        errand.ask(&asked).await
    })
}

/// Without the author's id the platform makes the caller the author, so the author is read first and sent along.
fn update<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let route = errand.path(errand.spec.route);
        let before =
            errand.ask(&Asked::get(&route).with("_fields", "id,user_id,post_title")).await?;
        let Some(author) = whole_number(&before.body["user_id"]) else {
            return Err(ToolError::failed(
                "the site does not tell who wrote this activity, so an update could change its author; \
                 nothing was changed",
            ));
        };
        let mut body = json!({"content": errand.arguments["content"], "user_id": author});
        // A site that has titles of posts does not take an update without one.
        if let Some(title) = before.body["post_title"].as_str().filter(|title| !title.is_empty()) {
            body["post_title"] = json!(title);
        }
        let answered = errand.ask(&Asked::new(Method::PUT, route).body(body)).await?;
        match whole_number(&answered.body["user_id"]) {
            Some(now) if now != author => Err(ToolError::failed(format!(
                "the content was changed, but the site changed the author from member {author} to member {now}"
            ))),
            _ => Ok(answered),
        }
    })
}

/// A toggle: it is not the same to call it twice.
fn favorite<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let asked = Asked::new(Method::PUT, errand.path(errand.spec.route));
        errand.ask(&asked).await
    })
}

/// The platform may say that it made a comment and store none; then it has no comments to show.
fn comment<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let answered = errand.plain().await?;
        match answered.body["comments"].as_array().is_some_and(|it| !it.is_empty()) {
            true => Ok(answered),
            false if answered.body["comments"].is_object() => Ok(answered),
            false => Err(ToolError::failed(nothing_stored(&answered.body))),
        }
    })
}

fn nothing_stored(body: &Value) -> String {
    let said = if body["created"] == true { "the site says that it was created, but " } else { "" };
    format!("{said}nothing was stored")
}
