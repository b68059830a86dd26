//! Private messages.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::json;

use super::spec::{
    FixedValue, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use super::tool_call::{ToolCall, not_found};
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::entities::{MEMBER, THREAD};

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_message_threads",
        "/buddyboss/v1/messages",
        "Thread",
        "List message threads, yours unless user_id says otherwise.",
    )
    .with_arguments(&[
        optional("user_id", SiteArgumentType::Id, "Member ID (default: you)")
            .with_default(FixedValue::CallerId),
        optional("search", SiteArgumentType::Text, "Search threads"),
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
    .with_arguments(&[required("id", SiteArgumentType::Id, "Thread ID")])
    .with_custom_run(get),
    tool(
        Verb::Post,
        "buddyboss_send_message",
        "/buddyboss/v1/messages",
        "Thread",
        "Send a private message as yourself, in a new thread or in one that you name.",
    )
    .with_arguments(&[
        required("recipients", SiteArgumentType::Ids, "IDs of the members who get it")
            .naming(&MEMBER),
        required("message", SiteArgumentType::Text, "The message"),
        optional("subject", SiteArgumentType::Text, "Subject of a new thread"),
        optional("thread_id", SiteArgumentType::Id, "ID of the thread to answer in")
            .sent_as("id")
            .naming(&THREAD),
    ])
    // The caller is the sender; no argument overrides that.
    .with_fixed_values(&[("sender_id", FixedValue::CallerId)]),
    tool(
        Verb::Delete,
        "buddyboss_delete_message_thread",
        "/buddyboss/v1/messages/{id}",
        "Thread",
        "Delete a message thread for every participant, not only for yourself.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Thread ID").naming(&THREAD)])
    .with_fixed_values(&[("user_id", FixedValue::CallerId)]),
    tool(
        Verb::Put,
        "buddyboss_mark_message_read",
        "/buddyboss/v1/messages/action/{id}",
        "Thread",
        "Mark a message thread as read or unread.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Thread ID").naming(&THREAD),
        optional("read", SiteArgumentType::Flag, "Whether it is read (default: true)").not_sent(),
    ])
    .require_visible_login()
    .with_custom_run(mark),
];

/// The platform responds to an unknown thread with an empty one.
fn get<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let response = call.send_single_request().await?;
        match response.body["message_id"].as_u64() {
            Some(0) => {
                Err(ToolError::failed(not_found("Thread", call.number("id").unwrap_or_default())))
            }
            _ => Ok(response),
        }
    })
}

fn mark<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let is_read = call.arguments.get("read").is_none_or(|read| *read == true);
        let request = SiteRequest::new(Method::POST, call.path(call.spec.route));
        call.request(&request.with_body(json!({"action": "unread", "value": !is_read}))).await
    })
}
