//! Connections between members.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Value, json};

use super::spec::{
    FixedValue, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use super::tool_call::{ToolCall, whole_number};
use crate::site::site_error::SiteError;
use crate::site::{SiteRequest, SiteResponse};
use creole_tools::ordered_value::OrderedValue;

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_friends",
        "/buddyboss/v1/friends",
        "Member",
        "List the confirmed friendships of a member.",
    )
    .with_arguments(&[
        optional("user_id", SiteArgumentType::Id, "Member ID (default: you)")
            .with_default(FixedValue::CallerId),
        PAGE,
        PER_PAGE,
    ])
    .with_fixed_values(&[("is_confirmed", FixedValue::Number(1))]),
    tool(
        Verb::Get,
        "buddyboss_list_friend_requests",
        "/buddyboss/v1/friends",
        "Member",
        "List the pending friendship requests of a member.",
    )
    .with_arguments(&[
        optional("user_id", SiteArgumentType::Id, "Member ID (default: you)")
            .with_default(FixedValue::CallerId),
        PAGE,
        PER_PAGE,
    ])
    .with_fixed_values(&[("is_confirmed", FixedValue::Number(0))]),
    tool(
        Verb::Post,
        "buddyboss_add_friend",
        "/buddyboss/v1/friends",
        "Member",
        "Ask a member for friendship.",
    )
    .with_arguments(&[
        required("friend_id", SiteArgumentType::Id, "ID of the member who is asked"),
        optional("initiator_id", SiteArgumentType::Id, "ID of the member who asks (default: you)")
            .with_default(FixedValue::CallerId),
        optional("force", SiteArgumentType::Flag, "Whether it is confirmed at once"),
    ])
    .with_custom_run(add),
    tool(
        Verb::Put,
        "buddyboss_accept_friend",
        "/buddyboss/v1/friends/{id}",
        "Friendship",
        "Accept a friendship request.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Friendship ID")])
    .require_visible_login(),
    tool(
        Verb::Delete,
        "buddyboss_remove_friend",
        "/buddyboss/v1/friends/{id}",
        "Friendship",
        "End a friendship of your own, or withdraw or reject a request for one.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Friendship ID")])
    .require_visible_login()
    .with_custom_run(remove),
];

/// Whether a friendship is confirmed: a flag, or a number.
fn is_confirmed(friendship: &Value) -> bool {
    friendship["is_confirmed"] == true || whole_number(&friendship["is_confirmed"]) == Some(1)
}

/// A caller who may not confirm at once creates a request instead, which the result notes.
fn add<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let added = call.send_single_request().await?;
        let first = if added.body.is_array() { &added.body[0] } else { &added.body };
        match call.flag("force", false) && !is_confirmed(first) {
            true => Ok(added.with_note(
                "The site made a request that still has to be accepted: it ignored `force`.",
            )),
            false => Ok(added),
        }
    })
}

/// The other member of the caller's friendship. The route that ends a friendship takes the id of a friend and ends the
/// caller's own friendship with that member, so the friendship of two other members is refused.
fn other_member(friendship: &Value, me: u64) -> Result<u64, ToolError> {
    let side = |key: &str| whole_number(&friendship[key]);
    match (side("initiator_id"), side("friend_id")) {
        (Some(initiator), Some(friend)) if initiator == me => Ok(friend),
        (Some(initiator), Some(friend)) if friend == me => Ok(initiator),
        (Some(initiator), Some(friend)) => Err(ToolError::failed(format!(
            "this friendship is between members {initiator} and {friend}; only one of them can end it. Nothing was \
             changed"
        ))),
        _ => Err(ToolError::failed(
            "the site does not return the members of this friendship; nothing was changed",
        )),
    }
}

/// A confirmed friendship is ended by the friend's id. The platform reports success even on failure, so the result is
/// verified.
fn remove<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let request = SiteRequest::get(call.path(call.spec.route));
        let SiteResponse { body, display: shown, .. } = call.request(&request).await?;
        let (friendship, location) = if body.is_array() { (&body[0], "/0") } else { (&body, "") };
        let other = other_member(friendship, call.user.id)?;
        if is_confirmed(friendship) {
            let ended = SiteRequest::new(Method::DELETE, "/buddyboss/v1/friends");
            call.request(&ended.with_query("friend_id", other)).await?;
        } else {
            call.send_single_request().await?;
        }
        match call.try_request(&request).await {
            Err(SiteError::Refused(refusal)) if refusal.status == 404 => {
                let mut ended = OrderedValue::from(json!({"deleted": true}));
                ended.insert("previous", shown.at_pointer(location).unwrap_or(Value::Null.into()));
                Ok(SiteResponse::from_display(ended))
            }
            _ => Err(ToolError::failed(
                "the site reported success, but the friendship is still there",
            )),
        }
    })
}
