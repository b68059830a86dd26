//! The forum of a group. The routes of groups only set a flag; the settings of a group create the forum.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::{ToolCall, whole_number};
use crate::write_guard::LATE_AUTH_ERROR;

/// Creates a group, and then its forum if requested.
pub(crate) fn create_group<'a>(
    call: &'a ToolCall<'a>,
) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        // Checks that the forum can be created before the group is created.
        let wants = requested_forum(call).await?;
        let created = call.send_single_request().await?;
        match (wants, whole_number(&created.body["id"])) {
            (Some(true), Some(id)) => set_forum(call, id, true, "the group was created").await,
            _ => Ok(created),
        }
    })
}

/// Changes a group, and then whether it has a forum.
pub(crate) fn update_group<'a>(
    call: &'a ToolCall<'a>,
) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let wants = requested_forum(call).await?;
        let request = call.build_request();
        let is_empty = request.body.as_ref().and_then(Value::as_object).is_none_or(Map::is_empty);
        match (wants, is_empty) {
            (None, true) => Err(ToolError::failed(
                "nothing to change: give name, description, status, enable_forum or parent_id",
            )),
            (None, false) => call.request(&request).await,
            (Some(wants), is_empty) => {
                if !is_empty {
                    call.request(&request).await?;
                }
                let done = if is_empty { "nothing was changed" } else { "the group was changed" };
                set_forum(call, call.number("id").unwrap_or_default(), wants, done).await
            }
        }
    })
}

/// Whether the call requests a forum for the group, if it specifies that. The platform must see the creator's login.
async fn requested_forum(call: &ToolCall<'_>) -> Result<Option<bool>, ToolError> {
    let wanted = call.arguments.get("enable_forum").and_then(Value::as_bool);
    match wanted.is_some() && !call.site.is_login_visible(call.user).await {
        true => Err(ToolError::failed(format!("`enable_forum`: {LATE_AUTH_ERROR}"))),
        false => Ok(wanted),
    }
}

/// Adds or removes the forum of a group, and verifies it.
async fn set_forum(
    call: &ToolCall<'_>,
    id: u64,
    wants: bool,
    done: &str,
) -> Result<SiteResponse, ToolError> {
    let settings = SiteRequest::new(Method::PUT, format!("/buddyboss/v1/groups/{id}/settings"));
    let body = json!({"nav": "forum", "fields": {"bbp-edit-group-forum": wants}});
    let half =
        |reason: String| ToolError::failed(format!("{done}, but its forum was not: {reason}"));
    if let Err(error) = call.try_request(&settings.with_body(body)).await {
        return Err(half(error.to_message(true)));
    }
    let group = call.request(&SiteRequest::get(format!("/buddyboss/v1/groups/{id}"))).await?;
    let has = whole_number(&group.body["forum"]).is_some_and(|forum| forum > 0);
    match has == wants {
        true => Ok(group),
        false if wants => {
            Err(half("the site made no forum; are forums of groups switched on?".to_owned()))
        }
        false => Err(half("the group still has its forum".to_owned())),
    }
}
