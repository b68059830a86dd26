//! Moderation of forum topics and replies.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use crate::site::{SiteRequest, SiteResponse};
use crate::tools::spec::{SiteArgumentType, ToolSpec, Verb, optional, required, tool};
use crate::tools::tool_call::{ToolCall, delete_and_verify, whole_number};

const WHERE: SiteArgumentType = SiteArgumentType::Choice(&["forum", "everywhere", "nowhere"]);
const TOPIC: &str = "/buddyboss/v1/topics/{id}";

pub(crate) const TOOLS: &[ToolSpec] = &[
    tool(
        Verb::Put,
        "buddyboss_update_topic",
        TOPIC,
        "Topic",
        "Change the title or the content of a topic, or move it to another forum.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Topic ID"),
        optional("title", SiteArgumentType::Text, "New title").not_sent(),
        optional("content", SiteArgumentType::Text, "New content").not_sent(),
        optional("forum_id", SiteArgumentType::Id, "ID of the forum to move it to").not_sent(),
    ])
    .with_custom_run(update_topic),
    tool(
        Verb::Put,
        "buddyboss_close_topic",
        "/buddyboss/v1/topics/action/{id}",
        "Topic",
        "Close a topic for replies, or open it again.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Topic ID"),
        optional("closed", SiteArgumentType::Flag, "Whether it is closed (default: true)")
            .not_sent(),
    ])
    .with_custom_run(close),
    tool(
        Verb::Put,
        "buddyboss_stick_topic",
        "/buddyboss/v1/topics/action/{id}",
        "Topic",
        "Keep a topic at the top of its forum or of all forums, or no longer.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Topic ID"),
        required("where", WHERE, "Where it stays at the top").not_sent(),
    ])
    .with_custom_run(stick),
    tool(
        Verb::Post,
        "buddyboss_merge_topics",
        "/buddyboss/v1/topics/merge/{id}",
        "Topic",
        "Merge a topic with its replies into another one permanently.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "ID of the topic that ends"),
        required(
            "destination_id",
            SiteArgumentType::Id,
            "ID of the topic that it becomes a part of",
        ),
    ])
    .destructive()
    .with_custom_run(merge),
    tool(
        Verb::Post,
        "buddyboss_split_topic",
        "/buddyboss/v1/topics/split/{id}",
        "Topic",
        "Split a topic at a reply: this and the later ones go to a new topic, or to another one.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Topic ID"),
        required("reply_id", SiteArgumentType::Id, "ID of the first reply to move"),
        optional("title", SiteArgumentType::Text, "Title of the new topic").not_sent(),
        optional(
            "destination_id",
            SiteArgumentType::Id,
            "ID of another topic instead of a new one",
        )
        .not_sent(),
    ])
    .destructive()
    .with_custom_run(split),
    tool(
        Verb::Put,
        "buddyboss_update_reply",
        "/buddyboss/v1/reply/{id}",
        "Reply",
        "Change the content of a reply.",
    )
    .with_arguments(&[
        required("id", SiteArgumentType::Id, "Reply ID"),
        required("content", SiteArgumentType::Text, "New content"),
    ])
    .with_custom_run(update_reply),
    tool(
        Verb::Delete,
        "buddyboss_delete_reply",
        "/buddyboss/v1/reply/{id}",
        "Reply",
        "Delete a reply.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Reply ID")])
    .with_custom_run(delete_and_verify),
];

/// The raw text of a field that has a raw and a rendered form.
fn raw_text(field: &Value) -> Value {
    field.get("raw").unwrap_or(field).clone()
}

/// The route takes the whole topic: members that are not sent are cleared, and a closed topic is reopened, so the topic
/// is read first.
fn update_topic<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let given = |name: &str| call.arguments.get(name).cloned();
        if ["title", "content", "forum_id"].iter().all(|name| given(name).is_none()) {
            return Err(ToolError::failed("nothing to change: give title, content or forum_id"));
        }
        let before = call.request(&SiteRequest::get(call.path(TOPIC))).await?.body;
        let parent = whole_number(&before["parent"])
            .map_or(before["forum_id"].clone(), |value| json!(value));
        let mut body = Map::new();
        body.insert("parent".to_owned(), given("forum_id").unwrap_or(parent));
        body.insert(
            "title".to_owned(),
            given("title").unwrap_or_else(|| raw_text(&before["title"])),
        );
        body.insert(
            "content".to_owned(),
            given("content").unwrap_or_else(|| raw_text(&before["content"])),
        );
        if let Some(status) = before["status"].as_str() {
            body.insert("status".to_owned(), json!(status));
        }
        // Without this the caller's subscription to the topic would end.
        if before["action_states"]["subscribed"] == true {
            body.insert("subscribe".to_owned(), json!(true));
        }
        let request =
            SiteRequest::new(Method::PUT, call.path(TOPIC)).with_body(Value::Object(body));
        let after = call.request(&request).await?;
        match whole_number(&after.body["author"]) == whole_number(&before["author"]) {
            true => Ok(after),
            false => Err(ToolError::failed(
                "the topic was changed, but the site changed its author as well",
            )),
        }
    })
}

async fn act(call: &ToolCall<'_>, action: &str, value: bool) -> Result<SiteResponse, ToolError> {
    let request = SiteRequest::new(Method::POST, call.path(call.spec.route));
    call.request(&request.with_body(json!({"action": action, "value": value}))).await
}

fn close<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let wants = call.flag("closed", true);
        let topic = act(call, "close", wants).await?;
        match topic.body["is_closed"].as_bool() {
            Some(is) if is != wants => Err(ToolError::failed(format!(
                "the site responded, but `is_closed` of the topic is still {is}"
            ))),
            _ => Ok(topic),
        }
    })
}

/// A sticky topic does not change its kind, so it is unstuck first.
fn stick<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let location = call.text("where").unwrap_or_default();
        let before = call.request(&SiteRequest::get(call.path(TOPIC))).await?;
        let is_sticky = before.body["sticky"] == true;
        let mut topic = before;
        if is_sticky {
            topic = act(call, "sticky", false).await?;
        }
        match location {
            "forum" => topic = act(call, "sticky", true).await?,
            "everywhere" => topic = act(call, "super_sticky", true).await?,
            _ => {}
        }
        match topic.body["sticky"].as_bool() {
            Some(is) if is != (location != "nowhere") => Err(ToolError::failed(format!(
                "the site responded, but `sticky` of the topic is {is}"
            ))),
            _ => Ok(topic),
        }
    })
}

fn merge<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        if call.number("id") == call.number("destination_id") {
            return Err(ToolError::failed("a topic cannot be merged with itself"));
        }
        let merged = call.send_single_request().await?;
        match whole_number(&merged.body["id"]) == call.number("destination_id") {
            true => Ok(merged),
            false => Err(ToolError::failed("the site returned another topic than the destination")),
        }
    })
}

fn split<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let mut request = call.build_request();
        let (title, other) = (call.text("title"), call.number("destination_id"));
        if let Some(body) = &mut request.body {
            match (title, other) {
                (None, Some(other)) => {
                    body["split_option"] = json!("existing");
                    body["destination_id"] = json!(other);
                }
                (Some(title), None) => {
                    body["split_option"] = json!("reply");
                    body["new_destination_title"] = json!(title);
                }
                _ => {
                    let description = "give either `title`, for a new topic, or `destination_id`";
                    return Err(ToolError::failed(description));
                }
            }
        }
        let made = call.request(&request).await?;
        match whole_number(&made.body["id"]) == call.number("id") {
            true => Err(ToolError::failed("the site returned the same topic; it was not split")),
            false => Ok(made),
        }
    })
}

/// The route needs the topic, and a nested reply loses its parent unless that is sent along.
fn update_reply<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let route = call.path(call.spec.route);
        let before = call.request(&SiteRequest::get(&route)).await?.body;
        let topic = whole_number(&before["parent"]).or_else(|| whole_number(&before["topic_id"]));
        let mut body = json!({"content": call.arguments["content"], "topic_id": topic});
        if let Some(above) = whole_number(&before["reply_to"]).filter(|id| *id > 0) {
            body["reply_to"] = json!(above);
        }
        let after = call.request(&SiteRequest::new(Method::PUT, route).with_body(body)).await?;
        match whole_number(&after.body["author"]) == whole_number(&before["author"]) {
            true => Ok(after),
            false => Err(ToolError::failed(
                "the reply was changed, but the site changed its author as well",
            )),
        }
    })
}
