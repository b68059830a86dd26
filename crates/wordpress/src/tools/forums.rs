//! Forums, their topics and the replies.

pub(crate) mod topics;

use super::spec::{PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool};
use super::tool_call::delete_and_verify;

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(Verb::Get, "buddyboss_list_forums", "/buddyboss/v1/forums", "Forum", "List forums.")
        .with_arguments(&[
            PAGE,
            PER_PAGE,
            optional("search", SiteArgumentType::Text, "Search forums"),
        ]),
    tool(Verb::Get, "buddyboss_get_forum", "/buddyboss/v1/forums/{id}", "Forum", "Get one forum.")
        .with_arguments(&[required("id", SiteArgumentType::Id, "Forum ID")]),
    tool(
        Verb::Get,
        "buddyboss_list_topics",
        "/buddyboss/v1/topics",
        "Topic",
        "List the topics of a forum, or of all.",
    )
    .with_arguments(&[
        optional("forum_id", SiteArgumentType::Id, "Forum ID").sent_as("parent"),
        optional("search", SiteArgumentType::Text, "Search topics"),
        PAGE,
        PER_PAGE,
    ]),
    tool(Verb::Get, "buddyboss_get_topic", "/buddyboss/v1/topics/{id}", "Topic", "Get one topic.")
        .with_arguments(&[required("id", SiteArgumentType::Id, "Topic ID")]),
    tool(
        Verb::Post,
        "buddyboss_create_topic",
        "/buddyboss/v1/topics",
        "Topic",
        "Begin a topic in a forum as yourself.",
    )
    .with_arguments(&[
        required("forum_id", SiteArgumentType::Id, "Forum ID").sent_as("parent"),
        required("title", SiteArgumentType::Text, "Title of the topic"),
        required("content", SiteArgumentType::Text, "First post of the topic"),
    ]),
    tool(
        Verb::Delete,
        "buddyboss_delete_topic",
        "/buddyboss/v1/topics/{id}",
        "Topic",
        "Delete a topic with its replies.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Topic ID")])
    .with_custom_run(delete_and_verify),
    tool(
        Verb::Get,
        "buddyboss_list_replies",
        "/buddyboss/v1/reply",
        "Topic",
        "List the replies to a topic.",
    )
    .with_arguments(&[
        required("topic_id", SiteArgumentType::Id, "Topic ID").sent_as("parent"),
        PAGE,
        PER_PAGE,
    ]),
    tool(
        Verb::Post,
        "buddyboss_create_reply",
        "/buddyboss/v1/reply",
        "Topic",
        "Reply to a topic as yourself.",
    )
    .with_arguments(&[
        required("topic_id", SiteArgumentType::Id, "Topic ID"),
        required("content", SiteArgumentType::Text, "The reply"),
    ]),
];
