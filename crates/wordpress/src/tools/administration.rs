//! Administrative tools for members, groups and notifications.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::spec::{FixedValue, SiteArgumentType, ToolSpec, Verb, optional, required, tool};
use super::tool_call::ToolCall;
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::entities::{GROUP, MEMBER};
use crate::tools::tool_call::upload::{DATA, FILE_NAME, read_file_argument};

const WHO: SiteArgumentType = SiteArgumentType::Choice(&["members", "mods", "admins"]);
/// Maximum number of rounds, each of which marks a hundred notifications.
const MAX_ROUNDS: u64 = 20;

/// The settings of a group: their names here and at the site.
const SETTINGS: &[(&str, &str)] = &[
    ("status", "group-status"),
    ("invite_status", "group-invite-status"),
    ("activity_feed_status", "group-activity-feed-status"),
    ("media_status", "group-media-status"),
    ("album_status", "group-album-status"),
    ("document_status", "group-document-status"),
    ("video_status", "group-video-status"),
    ("message_status", "group-message-status"),
];

pub(super) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Put,
        "buddyboss_set_member_role",
        "/wp/v2/users/{id}",
        "Member",
        "Replace the WordPress roles of a member.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Member ID"),
        required(
            "roles",
            SiteArgumentType::Texts,
            "WordPress roles, such as subscriber, editor or administrator",
        ),
    ])
    .with_fixed_values(&[("context", FixedValue::Text("edit"))])
    .destructive()
    .with_custom_run(set_role),
    tool(
        Verb::Get,
        "buddyboss_get_group_settings",
        "/buddyboss/v1/groups/{id}/settings",
        "Group",
        "Get the permissions of a group: who may invite, post and upload.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Group ID")])
    .with_fixed_values(&[("nav", FixedValue::Text("group-settings"))])
    .without_pages(),
    tool(
        Verb::Put,
        "buddyboss_update_group_settings",
        "/buddyboss/v1/groups/{id}/settings",
        "Group",
        "Change the permissions of a group: who may invite, post and upload. Settings that are \
            not given do not change.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Group ID"),
        optional(
            "status",
            SiteArgumentType::Choice(&["public", "private", "hidden"]),
            "Who sees the group",
        )
        .not_sent(),
        optional("invite_status", WHO, "Who may invite").not_sent(),
        optional("activity_feed_status", WHO, "Who may post").not_sent(),
        optional("media_status", WHO, "Who may add photos").not_sent(),
        optional("album_status", WHO, "Who may make albums").not_sent(),
        optional("document_status", WHO, "Who may add documents").not_sent(),
        optional("video_status", WHO, "Who may add videos").not_sent(),
        optional("message_status", WHO, "Who may message the group").not_sent(),
    ])
    .require_visible_login()
    .with_custom_run(change_settings),
    tool(
        Verb::Post,
        "buddyboss_set_group_avatar",
        "/buddyboss/v1/groups/{group_id}/avatar",
        "Group",
        "Change the picture of a group.",
    )
    .with_arguments(&[required("group_id", SiteArgumentType::Id, "Group ID"), FILE_NAME, DATA])
    .require_visible_login()
    .with_custom_run(set_avatar),
    tool(
        Verb::Post,
        "buddyboss_message_group",
        "/buddyboss/v1/messages/group",
        "Group",
        "Send a message as yourself to all members of a group, or to some of them.",
    )
    .with_arguments(&[
        required("group_id", SiteArgumentType::Id, "Group ID").naming(&GROUP),
        required("message", SiteArgumentType::Text, "The message"),
        optional("user_ids", SiteArgumentType::Ids, "IDs of the members who get it (default: all)")
            .not_sent()
            .naming(&MEMBER),
        optional(
            "type",
            SiteArgumentType::Choice(&["open", "private"]),
            "One thread of all, or a private one with each (default: open)",
        )
        .with_default(FixedValue::Text("open")),
    ])
    .require_visible_login()
    .with_custom_run(message),
    tool(
        Verb::Put,
        "buddyboss_mark_all_notifications_read",
        "/buddyboss/v1/notifications/bulk/read",
        "Notification",
        "Mark all of your notifications as read.",
    )
    .with_custom_run(mark_all),
];

/// Callers cannot change their own role: the site could lose its only administrator.
fn set_role<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        if call.number("id") == Some(call.user.id) {
            return Err(ToolError::failed(
                "these are your own roles: you could lose your access; ask another \
                    administrator. Nothing was changed",
            ));
        }
        let response = call.send_single_request().await?;
        let sorted = |value: &Value| {
            let mut roles: Vec<String> = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect();
            roles.sort();
            roles
        };
        let now = sorted(&response.body["roles"]);
        match now == sorted(&call.arguments["roles"]) {
            true => Ok(response),
            false => {
                let now = now.join(", ");
                Err(ToolError::failed(format!(
                    "the site responded, but the member has these roles: {now}"
                )))
            }
        }
    })
}

/// The site resets settings that are not sent, so they are read first and sent as a whole.
fn change_settings<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let route = call.path(call.spec.route);
        let request = SiteRequest::get(&route).with_query("nav", "group-settings");
        let before = call.request(&request).await?.body;
        let mut fields = settings(&before);
        let mut wanted = Vec::new();
        for (name, field) in SETTINGS {
            let Some(value) = call.text(name) else { continue };
            fields.insert((*field).to_owned(), json!(value));
            wanted.push((*name, *field, value));
        }
        if wanted.is_empty() {
            return Err(ToolError::failed("nothing to change: name a setting and its value"));
        }
        let body = json!({"nav": "group-settings", "fields": fields});
        let response = call.request(&SiteRequest::new(Method::PUT, route).with_body(body)).await?;
        if let Some(reason) = response.body["error"].as_str().filter(|reason| !reason.is_empty()) {
            return Err(ToolError::failed(reason.to_owned()));
        }
        let after = call.request(&request).await?;
        let now = settings(&after.body);
        let lost: Vec<&str> = wanted
            .iter()
            .filter(|(_, field, value)| now.get(*field) != Some(&json!(value)))
            .map(|it| it.0)
            .collect();
        match lost.is_empty() {
            true => Ok(after),
            false => {
                let lost = lost.join(", ");
                Err(ToolError::failed(format!("the site responded, but did not store: {lost}")))
            }
        }
    })
}

/// The values of the named settings.
fn settings(fields: &Value) -> Map<String, Value> {
    let fields = fields.as_array().into_iter().flatten();
    let named = fields
        .filter_map(|field| Some((field["name"].as_str()?.to_owned(), field["value"].clone())));
    named.filter(|(name, value)| !name.is_empty() && *value != "").collect()
}

fn set_avatar<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let mut picture = read_file_argument(call)?;
        picture.fields.push(("action", "bp_avatar_upload"));
        let route = call.path(call.spec.route);
        let set = call.request(&SiteRequest::new(Method::POST, route).with_file(picture)).await?;
        let first = if set.body.is_array() { &set.body[0] } else { &set.body };
        match first["full"].as_str().is_some_and(|url| !url.is_empty()) {
            true => Ok(set),
            false => Err(ToolError::failed("the site responded, but returned no picture")),
        }
    })
}

fn message<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let mut request = call.build_request();
        if let Some(body) = &mut request.body {
            match call.arguments.get("user_ids") {
                Some(ids) => {
                    body["users"] = json!("individual");
                    body["users_list"] = ids.clone();
                }
                None => body["users"] = json!("all"),
            }
        }
        let sent = call.request(&request).await?;
        let errors = &sent.body["errors"];
        let has_failed = errors.as_array().is_some_and(|all| !all.is_empty())
            || errors.as_object().is_some_and(|all| !all.is_empty());
        match has_failed {
            false => Ok(sent),
            true => {
                Err(ToolError::failed(format!("the site did not send it to all members: {errors}")))
            }
        }
    })
}

/// The site marks the newest hundred, and responds with the remaining unread ones.
fn mark_all<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let request = call.build_request();
        for _ in 0..MAX_ROUNDS {
            let mut request = request.clone();
            request.body = Some(json!({"per_page": 100}));
            let left = call.request(&request).await?;
            if left.body.as_array().is_some_and(Vec::is_empty) {
                return Ok(SiteResponse::from_display(json!({"unread": 0}).into()));
            }
        }
        let max = MAX_ROUNDS * 100;
        Err(ToolError::failed(format!(
            "{max} notifications were marked as read, and there are still others; call it again"
        )))
    })
}
