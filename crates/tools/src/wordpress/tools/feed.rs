//! What is done to posts of the feed besides writing them: comments, pins and reactions.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::json;

use super::errand::{Errand, deleted};
use super::spec::{Given, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use crate::wordpress::site::{Answered, Asked};

const ITEMS: Kind = Kind::Choice(&["activity", "activity_comment"]);

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Put,
        "buddyboss_update_activity_comment",
        "/buddyboss/v1/activity/{id}/comment/{comment_id}",
        "Activity",
        "Change the content of a comment, where the site allows that comments are edited.",
    )
    .takes(&[
        must("id", Kind::Id, "Activity ID"),
        must("comment_id", Kind::Id, "Comment ID"),
        must("content", Kind::Text, "New content"),
    ])
    .early(),
    tool(
        Verb::Delete,
        "buddyboss_delete_activity_comment",
        "/buddyboss/v1/activity/{id}/comment/{comment_id}",
        "Activity",
        "Delete a comment with its replies for good.",
    )
    .takes(&[must("id", Kind::Id, "Activity ID"), must("comment_id", Kind::Id, "Comment ID")])
    .early()
    .by(deleted),
    tool(
        Verb::Put,
        "buddyboss_pin_activity",
        "/buddyboss/v1/activity/{id}/pin",
        "Activity",
        "Pin an activity to the top of the feed or of its group, or take the pin away.",
    )
    .takes(&[
        must("id", Kind::Id, "Activity ID"),
        may("pinned", Kind::Flag, "Whether it is pinned (default: true)").kept(),
    ])
    .early()
    .by(pin),
    tool(
        Verb::Put,
        "buddyboss_close_activity_comments",
        "/buddyboss/v1/activity/{id}/close-comments",
        "Activity",
        "Close an activity for comments, or open it again.",
    )
    .takes(&[
        must("id", Kind::Id, "Activity ID"),
        may("closed", Kind::Flag, "Whether comments are closed (default: true)").kept(),
    ])
    .early()
    .by(close),
    tool(
        Verb::Get,
        "buddyboss_list_reactions",
        "/buddyboss/v1/reactions",
        "Reaction",
        "List the kinds of reactions that the site has, with their IDs.",
    )
    .whole(),
    tool(
        Verb::Get,
        "buddyboss_list_user_reactions",
        "/buddyboss/v1/user-reactions",
        "Reaction",
        "List who reacted to an activity or a comment, and how.",
    )
    .takes(&[
        may("item_type", ITEMS, "What they reacted to"),
        may("item_id", Kind::Id, "ID of what they reacted to"),
        may("user_id", Kind::Id, "Only reactions of this member"),
        may("reaction_id", Kind::Id, "Only reactions of this kind"),
        PAGE,
        PER_PAGE,
    ]),
    tool(
        Verb::Post,
        "buddyboss_add_reaction",
        "/buddyboss/v1/user-reactions",
        "Reaction",
        "React to an activity or a comment as yourself.",
    )
    .takes(&[
        must("reaction_id", Kind::Id, "ID of the kind of reaction"),
        must("item_type", ITEMS, "What to react to"),
        must("item_id", Kind::Id, "ID of what to react to"),
    ])
    .sends(&[("user_id", Given::Me)])
    .early(),
    tool(
        Verb::Delete,
        "buddyboss_remove_reaction",
        "/buddyboss/v1/user-reactions/{id}",
        "Reaction",
        "Take back a reaction of your own.",
    )
    .takes(&[must("id", Kind::Id, "ID of the member's reaction")])
    .early()
    .by(deleted),
];

fn pin<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let wants = errand.flag("pinned", true);
        switched(errand, json!({"remove_pin": !wants}), "is_pinned", wants).await
    })
}

fn close<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let wants = errand.flag("closed", true);
        switched(errand, json!({"turn_on_comments": !wants}), "is_comment_closed", wants).await
    })
}

/// Sends it, and looks whether the activity then is as asked: the platform answers 200 also to who may not do it.
async fn switched(
    errand: &Errand<'_>,
    body: serde_json::Value,
    key: &str,
    wants: bool,
) -> Result<Answered, ToolError> {
    let asked = Asked::new(Method::PUT, errand.path(errand.spec.route)).body(body);
    let said = errand.ask(&asked).await?;
    let activity = errand.ask(&Asked::get(errand.path("/buddyboss/v1/activity/{id}"))).await?;
    match activity.body[key].as_bool() {
        Some(is) if is != wants => {
            let feedback = said.body["feedback"].as_str().unwrap_or("no reason is given");
            Err(ToolError::failed(format!(
                "the site answered, but `{key}` is still {is}: {feedback}"
            )))
        }
        _ => Ok(activity),
    }
}
