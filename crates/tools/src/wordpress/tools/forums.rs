//! Forums, their topics and the replies.

use super::errand::deleted;
use super::spec::{Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};

pub(super) const TOOLS: &[Spec] = &[
    tool(Verb::Get, "buddyboss_list_forums", "/buddyboss/v1/forums", "Forum", "List forums.")
        .takes(&[PAGE, PER_PAGE, may("search", Kind::Text, "Search forums")]),
    tool(Verb::Get, "buddyboss_get_forum", "/buddyboss/v1/forums/{id}", "Forum", "Get one forum.")
        .takes(&[must("id", Kind::Id, "Forum ID")]),
    tool(
        Verb::Get,
        "buddyboss_list_topics",
        "/buddyboss/v1/topics",
        "Topic",
        "List the topics of a forum, or of all.",
    )
    .takes(&[
        may("forum_id", Kind::Id, "Forum ID").sent_as("parent"),
        may("search", Kind::Text, "Search topics"),
        PAGE,
        PER_PAGE,
    ]),
    tool(Verb::Get, "buddyboss_get_topic", "/buddyboss/v1/topics/{id}", "Topic", "Get one topic.")
        .takes(&[must("id", Kind::Id, "Topic ID")]),
    tool(
        Verb::Post,
        "buddyboss_create_topic",
        "/buddyboss/v1/topics",
        "Topic",
        "Begin a topic in a forum as yourself.",
    )
    .takes(&[
        must("forum_id", Kind::Id, "Forum ID").sent_as("parent"),
        must("title", Kind::Text, "Title of the topic"),
        must("content", Kind::Text, "First post of the topic"),
    ]),
    tool(
        Verb::Delete,
        "buddyboss_delete_topic",
        "/buddyboss/v1/topics/{id}",
        "Topic",
        "Delete a topic with its replies.",
    )
    .takes(&[must("id", Kind::Id, "Topic ID")])
    .by(deleted),
    tool(
        Verb::Get,
        "buddyboss_list_replies",
        "/buddyboss/v1/reply",
        "Topic",
        "List the replies to a topic.",
    )
    .takes(&[must("topic_id", Kind::Id, "Topic ID").sent_as("parent"), PAGE, PER_PAGE]),
    tool(
        Verb::Post,
        "buddyboss_create_reply",
        "/buddyboss/v1/reply",
        "Topic",
        "Reply to a topic as yourself.",
    )
    .takes(&[must("topic_id", Kind::Id, "Topic ID"), must("content", Kind::Text, "The reply")]),
];
