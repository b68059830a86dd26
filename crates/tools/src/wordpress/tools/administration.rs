//! What administrators do to members, groups and notifications besides the usual.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::errand::Errand;
use super::spec::{Given, Kind, Spec, Verb, may, must, tool};
use super::things::{GROUP, MEMBER};
use super::upload::{DATA, FILE_NAME, file};
use crate::wordpress::site::{Answered, Asked};

const WHO: Kind = Kind::Choice(&["members", "mods", "admins"]);
/// How many times a hundred notifications are marked.
const MOST_ROUNDS: u64 = 20;

/// The settings of a group: what they are called here and at the site.
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

pub(super) const TOOLS: &[Spec] = &[
    tool(
        Verb::Put,
        "buddyboss_set_member_role",
        "/wp/v2/users/{id}",
        "Member",
        "Give a member these WordPress roles instead of those before.",
    )
    .takes(&[
        must("id", Kind::Id, "Member ID"),
        must("roles", Kind::Texts, "WordPress roles, such as subscriber, editor or administrator"),
    ])
    .sends(&[("context", Given::Text("edit"))])
    .destroys()
    .by(set_role),
    tool(
        Verb::Get,
        "buddyboss_get_group_settings",
        "/buddyboss/v1/groups/{id}/settings",
        "Group",
        "Get who may invite, post and upload in a group.",
    )
    .takes(&[must("id", Kind::Id, "Group ID")])
    .sends(&[("nav", Given::Text("group-settings"))])
    .whole(),
    tool(
        Verb::Put,
        "buddyboss_update_group_settings",
        "/buddyboss/v1/groups/{id}/settings",
        "Group",
        "Change who may invite, post and upload in a group; what is not named stays.",
    )
    .takes(&[
        must("id", Kind::Id, "Group ID"),
        may("status", Kind::Choice(&["public", "private", "hidden"]), "Who sees the group").kept(),
        may("invite_status", WHO, "Who may invite").kept(),
        may("activity_feed_status", WHO, "Who may post").kept(),
        may("media_status", WHO, "Who may add photos").kept(),
        may("album_status", WHO, "Who may make albums").kept(),
        may("document_status", WHO, "Who may add documents").kept(),
        may("video_status", WHO, "Who may add videos").kept(),
        may("message_status", WHO, "Who may message the group").kept(),
    ])
    .early()
    .by(change_settings),
    tool(
        Verb::Post,
        "buddyboss_set_group_avatar",
        "/buddyboss/v1/groups/{group_id}/avatar",
        "Group",
        "Give a group another picture.",
    )
    .takes(&[must("group_id", Kind::Id, "Group ID"), FILE_NAME, DATA])
    .early()
    .by(set_avatar),
    tool(
        Verb::Post,
        "buddyboss_message_group",
        "/buddyboss/v1/messages/group",
        "Group",
        "Send a message as yourself to all members of a group, or to some of them.",
    )
    .takes(&[
        must("group_id", Kind::Id, "Group ID").of(&GROUP),
        must("message", Kind::Text, "The message"),
        may("user_ids", Kind::Ids, "IDs of the members who get it (default: all)")
            .kept()
            .of(&MEMBER),
        may(
            "type",
            Kind::Choice(&["open", "private"]),
            "One thread of all, or a private one with each (default: open)",
        )
        .or(Given::Text("open")),
    ])
    .early()
    .by(message),
    tool(
        Verb::Put,
        "buddyboss_mark_all_notifications_read",
        "/buddyboss/v1/notifications/bulk/read",
        "Notification",
        "Mark all of your notifications as read.",
    )
    .by(mark_all),
];

/// Callers keep their own roles: the site could lose its only administrator.
fn set_role<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        if errand.number("id") == Some(errand.visitor.id) {
            return Err(ToolError::failed(
                "these are your own roles: you could lose your access; ask another administrator. Nothing was changed",
            ));
        }
        let answered = errand.plain().await?;
        let sorted = |value: &Value| {
            let mut roles: Vec<String> = value
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|it| it.as_str().map(str::to_owned))
                .collect();
            roles.sort();
            roles
        };
        let now = sorted(&answered.body["roles"]);
        match now == sorted(&errand.arguments["roles"]) {
            true => Ok(answered),
            false => {
                let now = now.join(", ");
                Err(ToolError::failed(format!(
                    "the site answered, but the member has these roles: {now}"
                )))
            }
        }
    })
}

/// The site resets what is not sent, so the settings are read first and sent whole.
fn change_settings<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let route = errand.path(errand.spec.route);
        let look = Asked::get(&route).with("nav", "group-settings");
        let before = errand.ask(&look).await?.body;
        let mut fields = settings(&before);
        let mut wanted = Vec::new();
        for (name, field) in SETTINGS {
            let Some(value) = errand.text(name) else { continue };
            fields.insert((*field).to_owned(), json!(value));
            wanted.push((*name, *field, value));
        }
        if wanted.is_empty() {
            return Err(ToolError::failed("nothing to change: name a setting and its value"));
        }
        let body = json!({"nav": "group-settings", "fields": fields});
        let answered = errand.ask(&Asked::new(Method::PUT, route).body(body)).await?;
        if let Some(why) = answered.body["error"].as_str().filter(|why| !why.is_empty()) {
            return Err(ToolError::failed(why.to_owned()));
        }
        let after = errand.ask(&look).await?;
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
                Err(ToolError::failed(format!("the site answered, but did not store: {lost}")))
            }
        }
    })
}

/// The values of the settings that have a name.
fn settings(fields: &Value) -> Map<String, Value> {
    let fields = fields.as_array().into_iter().flatten();
    let named = fields
        .filter_map(|field| Some((field["name"].as_str()?.to_owned(), field["value"].clone())));
    named.filter(|(name, value)| !name.is_empty() && *value != "").collect()
}

fn set_avatar<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let mut picture = file(errand)?;
        picture.fields.push(("action", "bp_avatar_upload"));
        let route = errand.path(errand.spec.route);
        let set = errand.ask(&Asked::new(Method::POST, route).file(picture)).await?;
        let first = if set.body.is_array() { &set.body[0] } else { &set.body };
        match first["full"].as_str().is_some_and(|url| !url.is_empty()) {
            true => Ok(set),
            false => Err(ToolError::failed("the site answered, but names no picture")),
        }
    })
}

fn message<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let mut asked = errand.request();
        if let Some(body) = &mut asked.body {
            match errand.arguments.get("user_ids") {
                Some(ids) => {
                    body["users"] = json!("individual");
                    body["users_list"] = ids.clone();
                }
                None => body["users"] = json!("all"),
            }
        }
        let sent = errand.ask(&asked).await?;
        let errors = &sent.body["errors"];
        let has_failed = errors.as_array().is_some_and(|all| !all.is_empty())
            || errors.as_object().is_some_and(|all| !all.is_empty());
        match has_failed {
            false => Ok(sent),
            true => {
                Err(ToolError::failed(format!("the site did not send it to everybody: {errors}")))
            }
        }
    })
}

/// The site marks the newest hundred, and answers with what is still unread.
fn mark_all<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let asked = errand.request();
        for _ in 0..MOST_ROUNDS {
            let mut asked = asked.clone();
            asked.body = Some(json!({"per_page": 100}));
            let left = errand.ask(&asked).await?;
            if left.body.as_array().is_some_and(Vec::is_empty) {
                return Ok(Answered::made(json!({"unread": 0}).into()));
            }
        }
        let most = MOST_ROUNDS * 100;
        Err(ToolError::failed(format!(
            "{most} notifications were marked as read, and there are still others; call it again"
        )))
    })
}
