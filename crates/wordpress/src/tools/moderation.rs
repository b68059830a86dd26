//! Reports and blocks, if the site has enabled them. They belong to the caller, so the platform must see the caller's
//! login.

use creole::{BoxFuture, ToolError};
use http::Method;

use super::spec::{PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool};
use super::tool_call::{ToolCall, whole_number};
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::entities::MEMBER;

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_moderation_reports",
        "/buddyboss/v1/moderation",
        "Report",
        "List the members that you block, where the site allows blocking.",
    )
    .with_arguments(&[PAGE, PER_PAGE])
    .require_visible_login(),
    tool(
        Verb::Post,
        "buddyboss_report_content",
        "/buddyboss/v1/moderation/report",
        "Content",
        "Report content to the moderators, where the site allows it.",
    )
    .with_arguments(&[
        required("item_id", SiteArgumentType::Id, "ID of what is reported"),
        required("item_type", SiteArgumentType::Text, "What it is, such as activity or groups"),
        required("report_category", SiteArgumentType::Text, "ID of the category"),
        optional("note", SiteArgumentType::Text, "Why, for the category other"),
    ])
    .require_visible_login(),
    tool(
        Verb::Post,
        "buddyboss_block_member",
        "/buddyboss/v1/moderation",
        "Member",
        "Block a member, where the site allows it.",
    )
    .with_arguments(&[required("user_id", SiteArgumentType::Id, "Member ID")
        .sent_as("item_id")
        .naming(&MEMBER)])
    .require_visible_login()
    .with_custom_run(block),
    tool(
        Verb::Delete,
        "buddyboss_unblock_member",
        "/buddyboss/v1/moderation",
        "Member",
        "End your block of a member.",
    )
    .with_arguments(&[required("user_id", SiteArgumentType::Id, "Member ID").sent_as("item_id")])
    .require_visible_login()
    .with_custom_run(unblock),
];

fn block<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        if call.number("user_id") == Some(call.user.id) {
            return Err(ToolError::failed("you cannot block yourself"));
        }
        call.send_single_request().await
    })
}

/// A block is ended by its own id, which is found by the member.
fn unblock<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let member = call.number("user_id").unwrap_or_default();
        let request = SiteRequest::get(call.spec.route).with_query("item_id", member);
        let Some(block) = find_block(&call.request(&request).await?, member) else {
            return Err(ToolError::failed(format!("you do not block the member with ID {member}")));
        };
        let ended = SiteRequest::new(Method::DELETE, format!("{}/{block}", call.spec.route));
        let ended = call.request(&ended).await?;
        match find_block(&call.request(&request).await?, member) {
            None => Ok(ended),
            Some(_) => {
                Err(ToolError::failed("the site reported success, but the block is still there"))
            }
        }
    })
}

/// The id of the block of a member.
fn find_block(blocks: &SiteResponse, member: u64) -> Option<u64> {
    let mut blocks = blocks.body.as_array().into_iter().flatten();
    let block = blocks.find(|block| whole_number(&block["item_id"]) == Some(member))?;
    whole_number(&block["id"])
}
