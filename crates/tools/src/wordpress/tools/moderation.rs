//! Reports and blocks, where the site has them switched on.

use super::spec::{Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_moderation_reports",
        "/buddyboss/v1/moderation",
        "Report",
        "List the members that are blocked, where the site allows blocking.",
    )
    .takes(&[PAGE, PER_PAGE]),
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
    ]),
    tool(
        Verb::Post,
        "buddyboss_block_member",
        "/buddyboss/v1/moderation",
        "Member",
        "Block a member, where the site allows it.",
    )
    .takes(&[must("user_id", Kind::Id, "Member ID").sent_as("item_id")]),
];
