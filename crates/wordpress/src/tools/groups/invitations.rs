//! Group invitations and requests to join a group.

use creole::{BoxFuture, ToolError};

use crate::site::{SiteRequest, SiteResponse};
use crate::tools::groups::is_member;
use crate::tools::spec::{
    FixedValue, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use crate::tools::tool_call::entities::{GROUP, MEMBER};
use crate::tools::tool_call::{ToolCall, delete_and_verify, whole_number};

pub(crate) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_group_invites",
        "/buddyboss/v1/groups/invites",
        "Member",
        "List the invitations to groups that a member has.",
    )
    .with_arguments(&[
        optional("user_id", SiteArgumentType::Id, "Member ID (default: you)")
            .with_default(FixedValue::CallerId),
        PAGE,
        PER_PAGE,
    ])
    .require_visible_login(),
    tool(
        Verb::Post,
        "buddyboss_send_group_invite",
        "/buddyboss/v1/groups/invites",
        "Invitation",
        "Invite a member to a group as yourself.",
    )
    .with_arguments(&[
        required("group_id", SiteArgumentType::Id, "Group ID").naming(&GROUP),
        required("user_id", SiteArgumentType::Id, "ID of the member who is invited")
            .naming(&MEMBER),
        optional("message", SiteArgumentType::Text, "What to write to the member"),
    ])
    .with_fixed_values(&[
        ("inviter_id", FixedValue::CallerId),
        ("send_invite", FixedValue::Flag(true)),
    ])
    .require_visible_login()
    .with_custom_run(send),
    tool(
        Verb::Put,
        "buddyboss_accept_group_invite",
        "/buddyboss/v1/groups/invites/{id}",
        "Invitation",
        "Accept an invitation to a group, for the member who was invited.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Invitation ID")])
    .require_visible_login()
    .with_custom_run(accept),
    tool(
        Verb::Delete,
        "buddyboss_withdraw_group_invite",
        "/buddyboss/v1/groups/invites/{id}",
        "Invitation",
        "Withdraw an invitation to a group, or reject one of your own.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Invitation ID")])
    .require_visible_login()
    .with_custom_run(delete_and_verify),
    tool(
        Verb::Get,
        "buddyboss_list_membership_requests",
        "/buddyboss/v1/groups/membership-requests",
        "Group",
        "List the requests to join a group.",
    )
    .with_arguments(&[required("group_id", SiteArgumentType::Id, "Group ID"), PAGE, PER_PAGE])
    .require_visible_login(),
    tool(
        Verb::Put,
        "buddyboss_accept_membership_request",
        "/buddyboss/v1/groups/membership-requests/{id}",
        "Membership request",
        "Accept a request to join a group.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Membership request ID")])
    .require_visible_login()
    .with_custom_run(accept),
    tool(
        Verb::Delete,
        "buddyboss_reject_membership_request",
        "/buddyboss/v1/groups/membership-requests/{id}",
        "Membership request",
        "Reject a request to join a group.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Membership request ID")])
    .require_visible_login()
    .with_custom_run(delete_and_verify),
];

fn send<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let sent = call.send_single_request().await?;
        match whole_number(&sent.body["id"]).filter(|id| *id > 0) {
            Some(_) => Ok(sent),
            None => Err(ToolError::failed("the site responded, but no invitation was made")),
        }
    })
}

/// Verifies that an accepted user is in the group.
fn accept<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let request = SiteRequest::get(call.path(call.spec.route));
        let waiting = call.request(&request).await?.body;
        let waiting = if waiting.is_array() { &waiting[0] } else { &waiting };
        let (group, user) = (whole_number(&waiting["group_id"]), whole_number(&waiting["user_id"]));
        let accepted = call.send_single_request().await?;
        let (Some(group), Some(user)) = (group, user) else {
            return Ok(accepted.with_note(
                "The site does not return the accepted member and group, so the result was not verified.",
            ));
        };
        match is_member(call, group, user).await? {
            true => Ok(accepted),
            false => Err(ToolError::failed(format!(
                "the site reported success, but member {user} is not in group {group}"
            ))),
        }
    })
}
