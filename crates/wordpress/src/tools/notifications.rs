//! Notifications.

use creole::{BoxFuture, ToolError};

use super::spec::{
    FixedValue, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use super::tool_call::{ToolCall, whole_number};
use crate::site::SiteResponse;

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_notifications",
        "/buddyboss/v1/notifications",
        "Notification",
        "List notifications, yours unless user_id says otherwise.",
    )
    .with_arguments(&[
        optional("user_id", SiteArgumentType::Id, "Member ID (default: you)")
            .with_default(FixedValue::CallerId),
        optional("is_new", SiteArgumentType::Flag, "Whether they are unread (default: true)"),
        optional("component_name", SiteArgumentType::Text, "Only notifications of this component"),
        optional("sort", SiteArgumentType::Choice(&["ASC", "DESC"]), "Direction of the order")
            .sent_as("sort_order"),
        PAGE,
        PER_PAGE,
    ]),
    tool(
        Verb::Get,
        "buddyboss_get_notification",
        "/buddyboss/v1/notifications/{id}",
        "Notification",
        "Get one notification.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Notification ID")]),
    tool(
        Verb::Put,
        "buddyboss_mark_notification_read",
        "/buddyboss/v1/notifications/{id}",
        "Notification",
        "Mark a notification as read, or as new again.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Notification ID"),
        optional("is_new", SiteArgumentType::ZeroOrOne, "Whether it is unread (default: false)")
            .with_default(FixedValue::Number(0)),
    ])
    .with_custom_run(mark),
    tool(
        Verb::Delete,
        "buddyboss_delete_notification",
        "/buddyboss/v1/notifications/{id}",
        "Notification",
        "Delete a notification permanently.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Notification ID")]),
];

/// The response contains the notification as stored.
fn mark<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let wants = u64::from(call.flag("is_new", false));
        let marked = call.send_single_request().await?;
        let first = if marked.body.is_array() { &marked.body[0] } else { &marked.body };
        match whole_number(&first["is_new"]) {
            Some(is) if is != wants => {
                Err(ToolError::failed(format!("the site responded, but `is_new` is still {is}")))
            }
            _ => Ok(marked),
        }
    })
}
