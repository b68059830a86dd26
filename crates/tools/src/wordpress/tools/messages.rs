//! Private messages.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::json;

use super::errand::{Errand, not_found};
use super::spec::{Given, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use super::things::{MEMBER, THREAD};
use crate::wordpress::site::{Answered, Asked};

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_message_threads",
        "/buddyboss/v1/messages",
        "Thread",
        "List message threads, yours unless user_id says otherwise.",
    )
    .takes(&[
        may("user_id", Kind::Id, "Member ID (default: you)").or(Given::Me),
        may("search", Kind::Text, "Search threads"),
        PAGE,
        PER_PAGE,
    ]),
    tool(
        Verb::Get,
        "buddyboss_get_message_thread",
        "/buddyboss/v1/messages/{id}",
        "Thread",
        "Get one message thread with its messages.",
    )
    .takes(&[must("id", Kind::Id, "Thread ID")])
    .by(get),
    tool(
        Verb::Post,
        "buddyboss_send_message",
        "/buddyboss/v1/messages",
        "Thread",
        "Send a private message as yourself, in a new thread or in one that you name.",
    )
    .takes(&[
        must("recipients", Kind::Ids, "IDs of the members who get it").of(&MEMBER),
        must("message", Kind::Text, "The message"),
        may("subject", Kind::Text, "Subject of a new thread"),
        may("thread_id", Kind::Id, "ID of the thread to answer in").sent_as("id").of(&THREAD),
    ])
    // Whoever calls is the sender; no argument says otherwise.
    .sends(&[("sender_id", Given::Me)]),
    tool(
        Verb::Delete,
        "buddyboss_delete_message_thread",
        "/buddyboss/v1/messages/{id}",
        "Thread",
        "Delete a message thread for every participant, not only for yourself.",
    )
    .takes(&[must("id", Kind::Id, "Thread ID").of(&THREAD)])
    .sends(&[("user_id", Given::Me)]),
    tool(
        Verb::Put,
        "buddyboss_mark_message_read",
        "/buddyboss/v1/messages/action/{id}",
        "Thread",
        "Mark a message thread as read or unread.",
    )
    .takes(&[
        must("id", Kind::Id, "Thread ID").of(&THREAD),
        may("read", Kind::Flag, "Whether it is read (default: true)").kept(),
    ])
    .early()
    .by(mark),
];

/// The platform answers an unknown thread with an empty one.
fn get<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let answered = errand.plain().await?;
        match answered.body["message_id"].as_u64() {
            Some(0) => {
                Err(ToolError::failed(not_found("Thread", errand.number("id").unwrap_or_default())))
            }
            _ => Ok(answered),
        }
    })
}

fn mark<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let is_read = errand.arguments.get("read").is_none_or(|read| *read == true);
        let asked = Asked::new(Method::POST, errand.path(errand.spec.route));
        errand.ask(&asked.body(json!({"action": "unread", "value": !is_read}))).await
    })
}
