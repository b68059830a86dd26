//! Reports and blocks, where the site has them switched on. They are the caller's own, so the platform must see who calls.

use creole::{BoxFuture, ToolError};
use http::Method;

use super::errand::{Errand, whole_number};
use super::spec::{Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use super::things::MEMBER;
use crate::wordpress::site::{Answered, Asked};

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_moderation_reports",
        "/buddyboss/v1/moderation",
        "Report",
        "List the members that you block, where the site allows blocking.",
    )
    .takes(&[PAGE, PER_PAGE])
    .early(),
    tool(
        Verb::Post,
        "buddyboss_report_content",
        "/buddyboss/v1/moderation/report",
        "Content",
        "Report content to the moderators, where the site allows it.",
    )
    .takes(&[
        must("item_id", Kind::Id, "ID of what is reported"),
        must("item_type", Kind::Text, "What it is, such as activity or groups"),
        must("report_category", Kind::Text, "ID of the category"),
        may("note", Kind::Text, "Why, for the category other"),
    ])
    .early(),
    tool(
        Verb::Post,
        "buddyboss_block_member",
        "/buddyboss/v1/moderation",
        "Member",
        "Block a member, where the site allows it.",
    )
    .takes(&[must("user_id", Kind::Id, "Member ID").sent_as("item_id").of(&MEMBER)])
    .early()
    .by(block),
    tool(
        Verb::Delete,
        "buddyboss_unblock_member",
        "/buddyboss/v1/moderation",
        "Member",
        "End your block of a member.",
    )
    .takes(&[must("user_id", Kind::Id, "Member ID").sent_as("item_id")])
    .early()
    .by(unblock),
];

fn block<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        if errand.number("user_id") == Some(errand.visitor.id) {
            return Err(ToolError::failed("you cannot block yourself"));
        }
        errand.plain().await
    })
}

/// A block is ended by its own id, which is found by the member.
fn unblock<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let member = errand.number("user_id").unwrap_or_default();
        let look = Asked::get(errand.spec.route).with("item_id", member);
        let Some(block) = found(&errand.ask(&look).await?, member) else {
            return Err(ToolError::failed(format!("you do not block the member with ID {member}")));
        };
        let ended = Asked::new(Method::DELETE, format!("{}/{block}", errand.spec.route));
        let ended = errand.ask(&ended).await?;
        match found(&errand.ask(&look).await?, member) {
            None => Ok(ended),
            Some(_) => Err(ToolError::failed(
                "the site says that it is done, but the block is still there",
            )),
        }
    })
}

/// The id of the block of a member.
fn found(blocks: &Answered, member: u64) -> Option<u64> {
    let mut blocks = blocks.body.as_array().into_iter().flatten();
    let block = blocks.find(|block| whole_number(&block["item_id"]) == Some(member))?;
    whole_number(&block["id"])
}
