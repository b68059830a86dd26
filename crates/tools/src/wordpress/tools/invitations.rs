//! Who is asked into a group, and who asks to join one.

use creole::{BoxFuture, ToolError};

use super::errand::{Errand, deleted, whole_number};
use super::groups::is_member;
use super::spec::{Given, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use super::things::{GROUP, MEMBER};
use crate::wordpress::site::{Answered, Asked};

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_group_invites",
        "/buddyboss/v1/groups/invites",
        "Member",
        "List the invitations to groups that a member has.",
    )
    .takes(&[may("user_id", Kind::Id, "Member ID (default: you)").or(Given::Me), PAGE, PER_PAGE])
    .early(),
    tool(
        Verb::Post,
        "buddyboss_send_group_invite",
        "/buddyboss/v1/groups/invites",
        "Invitation",
        "Invite a member to a group as yourself.",
    )
    .takes(&[
        must("group_id", Kind::Id, "Group ID").of(&GROUP),
        must("user_id", Kind::Id, "ID of the member who is invited").of(&MEMBER),
        may("message", Kind::Text, "What to write to the member"),
    ])
    .sends(&[("inviter_id", Given::Me), ("send_invite", Given::Flag(true))])
    .early()
    .by(send),
    tool(
        Verb::Put,
        "buddyboss_accept_group_invite",
        "/buddyboss/v1/groups/invites/{id}",
        "Invitation",
        "Accept an invitation to a group, for the member who was invited.",
    )
    .takes(&[must("id", Kind::Id, "Invitation ID")])
    .early()
    .by(accept),
    tool(
        Verb::Delete,
        "buddyboss_withdraw_group_invite",
        "/buddyboss/v1/groups/invites/{id}",
        "Invitation",
        "Withdraw an invitation to a group, or reject one of your own.",
    )
    .takes(&[must("id", Kind::Id, "Invitation ID")])
    .early()
    .by(deleted),
    tool(
        Verb::Get,
        "buddyboss_list_membership_requests",
        "/buddyboss/v1/groups/membership-requests",
        "Group",
        "List the requests to join a group.",
    )
    .takes(&[must("group_id", Kind::Id, "Group ID"), PAGE, PER_PAGE])
    .early(),
    tool(
        Verb::Put,
        "buddyboss_accept_membership_request",
        "/buddyboss/v1/groups/membership-requests/{id}",
        "Membership request",
        "Let somebody into a group who asked to join it.",
    )
    .takes(&[must("id", Kind::Id, "Membership request ID")])
    .early()
    .by(accept),
    tool(
        Verb::Delete,
        "buddyboss_reject_membership_request",
        "/buddyboss/v1/groups/membership-requests/{id}",
        "Membership request",
        "Reject a request to join a group.",
    )
    .takes(&[must("id", Kind::Id, "Membership request ID")])
    .early()
    .by(deleted),
];

fn send<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let sent = errand.plain().await?;
        match whole_number(&sent.body["id"]).filter(|id| *id > 0) {
            Some(_) => Ok(sent),
            None => Err(ToolError::failed("the site answered, but no invitation was made")),
        }
    })
}

/// Whoever is accepted must then be found in the group.
fn accept<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let asked = Asked::get(errand.path(errand.spec.route));
        let waiting = errand.ask(&asked).await?.body;
        let waiting = if waiting.is_array() { &waiting[0] } else { &waiting };
        let (group, user) = (whole_number(&waiting["group_id"]), whole_number(&waiting["user_id"]));
        let accepted = errand.plain().await?;
        let (Some(group), Some(user)) = (group, user) else {
            return Ok(accepted
                .note("The site does not tell who was accepted where, so this was not checked."));
        };
        match is_member(errand, group, user).await? {
            true => Ok(accepted),
            false => Err(ToolError::failed(format!(
                "the site says that it is done, but member {user} is not in group {group}"
            ))),
        }
    })
}
