//! Actions on feed posts: comments, pins and reactions.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::json;

use crate::site::{SiteRequest, SiteResponse};
use crate::tools::spec::{
    FixedValue, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use crate::tools::tool_call::{ToolCall, delete_and_verify};

const ITEMS: SiteArgumentType = SiteArgumentType::Choice(&["activity", "activity_comment"]);

pub(crate) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Put,
        "buddyboss_update_activity_comment",
        "/buddyboss/v1/activity/{id}/comment/{comment_id}",
        "Activity",
        "Change the content of a comment, where the site allows that comments are edited.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Activity ID"),
        required("comment_id", SiteArgumentType::Id, "Comment ID"),
        required("content", SiteArgumentType::Text, "New content"),
    ])
    .require_visible_login(),
    tool(
        Verb::Delete,
        "buddyboss_delete_activity_comment",
        "/buddyboss/v1/activity/{id}/comment/{comment_id}",
        "Activity",
        "Delete a comment with its replies permanently.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Activity ID"),
        required("comment_id", SiteArgumentType::Id, "Comment ID"),
    ])
    .require_visible_login()
    .with_custom_run(delete_and_verify),
    tool(
        Verb::Put,
        "buddyboss_pin_activity",
        "/buddyboss/v1/activity/{id}/pin",
        "Activity",
        "Pin an activity to the top of the feed or of its group, or take the pin away.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Activity ID"),
        optional("pinned", SiteArgumentType::Flag, "Whether it is pinned (default: true)")
            .not_sent(),
    ])
    .require_visible_login()
    .with_custom_run(pin),
    tool(
        Verb::Put,
        "buddyboss_close_activity_comments",
        "/buddyboss/v1/activity/{id}/close-comments",
        "Activity",
        "Close an activity for comments, or open it again.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Activity ID"),
        optional("closed", SiteArgumentType::Flag, "Whether comments are closed (default: true)")
            .not_sent(),
    ])
    .require_visible_login()
    .with_custom_run(close),
    tool(
        Verb::Get,
        "buddyboss_list_reactions",
        "/buddyboss/v1/reactions",
        "Reaction",
        "List the kinds of reactions that the site has, with their IDs.",
    )
    .without_pages(),
    tool(
        Verb::Get,
        "buddyboss_list_user_reactions",
        "/buddyboss/v1/user-reactions",
        "Reaction",
        "List the reactions to an activity or a comment.",
    )
    .with_arguments(&[
        optional("item_type", ITEMS, "What they reacted to"),
        optional("item_id", SiteArgumentType::Id, "ID of what they reacted to"),
        optional("user_id", SiteArgumentType::Id, "Only reactions of this member"),
        optional("reaction_id", SiteArgumentType::Id, "Only reactions of this kind"),
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
    .with_arguments(&[
        required("reaction_id", SiteArgumentType::Id, "ID of the kind of reaction"),
        required("item_type", ITEMS, "What to react to"),
        required("item_id", SiteArgumentType::Id, "ID of what to react to"),
    ])
    .with_fixed_values(&[("user_id", FixedValue::CallerId)])
    .require_visible_login(),
    tool(
        Verb::Delete,
        "buddyboss_remove_reaction",
        "/buddyboss/v1/user-reactions/{id}",
        "Reaction",
        "Take back a reaction of your own.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "ID of the member's reaction")])
    .require_visible_login()
    .with_custom_run(delete_and_verify),
];

fn pin<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let wants = call.flag("pinned", true);
        switch_and_verify(call, json!({"remove_pin": !wants}), "is_pinned", wants).await
    })
}

fn close<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let wants = call.flag("closed", true);
        switch_and_verify(call, json!({"turn_on_comments": !wants}), "is_comment_closed", wants)
            .await
    })
}

/// Sends the request and verifies the state of the activity: the platform responds with 200 even without permission.
async fn switch_and_verify(
    call: &ToolCall<'_>,
    body: serde_json::Value,
    key: &str,
    wants: bool,
) -> Result<SiteResponse, ToolError> {
    let request = SiteRequest::new(Method::PUT, call.path(call.spec.route)).with_body(body);
    let response = call.request(&request).await?;
    let activity =
        call.request(&SiteRequest::get(call.path("/buddyboss/v1/activity/{id}"))).await?;
    match activity.body[key].as_bool() {
        Some(is) if is != wants => {
            let feedback = response.body["feedback"].as_str().unwrap_or("no reason is given");
            Err(ToolError::failed(format!(
                "the site responded, but `{key}` is still {is}: {feedback}"
            )))
        }
        _ => Ok(activity),
    }
}
