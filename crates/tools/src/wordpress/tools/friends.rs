//! Connections between members.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Value, json};

use super::errand::{Errand, whole_number};
use super::spec::{Given, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use crate::ordered_value::OrderedValue;
use crate::wordpress::site::{Answered, Asked};
use crate::wordpress::trouble::Trouble;

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_friends",
        "/buddyboss/v1/friends",
        "Member",
        "List the confirmed friendships of a member.",
    )
    .takes(&[may("user_id", Kind::Id, "Member ID (default: you)").or(Given::Me), PAGE, PER_PAGE])
    .sends(&[("is_confirmed", Given::Number(1))]),
    tool(
        Verb::Get,
        "buddyboss_list_friend_requests",
        "/buddyboss/v1/friends",
        "Member",
        "List the friendship requests of a member that nobody has accepted yet.",
    )
    .takes(&[may("user_id", Kind::Id, "Member ID (default: you)").or(Given::Me), PAGE, PER_PAGE])
    .sends(&[("is_confirmed", Given::Number(0))]),
    tool(
        Verb::Post,
        "buddyboss_add_friend",
        "/buddyboss/v1/friends",
        "Member",
        "Ask a member for friendship.",
    )
    .takes(&[
        must("friend_id", Kind::Id, "ID of the member who is asked"),
        may("initiator_id", Kind::Id, "ID of the member who asks (default: you)").or(Given::Me),
        may("force", Kind::Flag, "Whether it is confirmed at once"),
    ])
    .by(add),
    tool(
        Verb::Put,
        "buddyboss_accept_friend",
        "/buddyboss/v1/friends/{id}",
        "Friendship",
        "Accept a friendship request.",
    )
    .takes(&[must("id", Kind::Id, "Friendship ID")])
    .early(),
    tool(
        Verb::Delete,
        "buddyboss_remove_friend",
        "/buddyboss/v1/friends/{id}",
        "Friendship",
        "End a friendship of your own, or withdraw or reject a request for one.",
    )
    .takes(&[must("id", Kind::Id, "Friendship ID")])
    .early()
    .by(remove),
];

/// Whether somebody is confirmed: a flag, or a number.
fn is_confirmed(friendship: &Value) -> bool {
    friendship["is_confirmed"] == true || whole_number(&friendship["is_confirmed"]) == Some(1)
}

/// Who may not confirm at once gets a request instead, and is told so.
fn add<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let added = errand.plain().await?;
        let first = if added.body.is_array() { &added.body[0] } else { &added.body };
        match errand.flag("force", false) && !is_confirmed(first) {
            true => Ok(added.note(
                "The site made a request that still has to be accepted: it ignored `force`.",
            )),
            false => Ok(added),
        }
    })
}

/// The member on the other side of the caller's friendship. The route that ends a friendship takes the id of a friend and
/// ends the caller's own friendship with that member, so the friendship of two others is refused.
fn other(friendship: &Value, me: u64) -> Result<u64, ToolError> {
    let side = |key: &str| whole_number(&friendship[key]);
    match (side("initiator_id"), side("friend_id")) {
        (Some(initiator), Some(friend)) if initiator == me => Ok(friend),
        (Some(initiator), Some(friend)) if friend == me => Ok(initiator),
        (Some(initiator), Some(friend)) => Err(ToolError::failed(format!(
            "this friendship is between members {initiator} and {friend}; only one of them can end it. Nothing was \
             changed"
        ))),
        _ => Err(ToolError::failed(
            "the site does not tell whose friendship this is; nothing was changed",
        )),
    }
}

/// A confirmed friendship is ended by naming the friend. The platform says that it is done also where it is not, so it
/// is looked for afterwards.
fn remove<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let look = Asked::get(errand.path(errand.spec.route));
        let Answered { body, shown, .. } = errand.ask(&look).await?;
        let (friendship, place) = if body.is_array() { (&body[0], "/0") } else { (&body, "") };
        let other = other(friendship, errand.visitor.id)?;
        if is_confirmed(friendship) {
            let ended = Asked::new(Method::DELETE, "/buddyboss/v1/friends");
            errand.ask(&ended.with("friend_id", other)).await?;
        } else {
            errand.plain().await?;
        }
        match errand.try_ask(&look).await {
            Err(Trouble::Refused(refusal)) if refusal.status == 404 => {
                let mut ended = OrderedValue::from(json!({"deleted": true}));
                ended.insert("previous", shown.at_pointer(place).unwrap_or(Value::Null.into()));
                Ok(Answered::made(ended))
            }
            _ => Err(ToolError::failed(
                "the site says that it is done, but the friendship is still there",
            )),
        }
    })
}
