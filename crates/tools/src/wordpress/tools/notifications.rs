//! Notifications.

use creole::{BoxFuture, ToolError};

use super::errand::{Errand, whole_number};
use super::spec::{Given, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use crate::wordpress::site::Answered;

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Get,
        "buddyboss_list_notifications",
        "/buddyboss/v1/notifications",
        "Notification",
        "List notifications, yours unless user_id says otherwise.",
    )
    .takes(&[
        may("user_id", Kind::Id, "Member ID (default: you)").or(Given::Me),
        may("is_new", Kind::Flag, "Whether they are unread (default: true)"),
        may("component_name", Kind::Text, "Only notifications of this component"),
        may("sort", Kind::Choice(&["ASC", "DESC"]), "Direction of the order").sent_as("sort_order"),
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
    .takes(&[must("id", Kind::Id, "Notification ID")]),
    tool(
        Verb::Put,
        "buddyboss_mark_notification_read",
        "/buddyboss/v1/notifications/{id}",
        "Notification",
        "Mark a notification as read, or as new again.",
    )
    .takes(&[
        must("id", Kind::Id, "Notification ID"),
        may("is_new", Kind::Bit, "Whether it is unread (default: false)").or(Given::Number(0)),
    ])
    .by(mark),
    tool(
        Verb::Delete,
        "buddyboss_delete_notification",
        "/buddyboss/v1/notifications/{id}",
        "Notification",
        "Delete a notification for good.",
    )
    .takes(&[must("id", Kind::Id, "Notification ID")]),
];

/// The answer shows the notification as it is stored.
fn mark<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let wants = u64::from(errand.flag("is_new", false));
        let marked = errand.plain().await?;
        let first = if marked.body.is_array() { &marked.body[0] } else { &marked.body };
        match whole_number(&first["is_new"]) {
            Some(is) if is != wants => {
                Err(ToolError::failed(format!("the site answered, but `is_new` is still {is}")))
            }
            _ => Ok(marked),
        }
    })
}
