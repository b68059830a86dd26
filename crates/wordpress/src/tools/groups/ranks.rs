//! Ranks of members in a group. The platform reports success even if a rank does not change.

use creole::ToolError;
use http::Method;
use serde_json::{Value, json};

use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::ToolCall;

/// Rejects a change without an effect.
pub(crate) fn check_has_effect(call: &ToolCall<'_>) -> Result<(), ToolError> {
    let is_promoted = call.text("action") == Some("promote");
    match is_promoted && !matches!(call.text("role"), Some("mod" | "admin")) {
        true => {
            Err(ToolError::failed("`promote` needs a `role`: mod or admin; nothing was changed"))
        }
        false => Ok(()),
    }
}

/// Changes the rank, and verifies it.
pub(crate) async fn change_and_verify(call: &ToolCall<'_>) -> Result<SiteResponse, ToolError> {
    let changed = match (call.text("action"), call.text("role")) {
        // The platform would add the moderator rank and keep the organizer rank.
        (Some("demote"), Some("mod")) => {
            put(call, json!({"action": "demote", "role": "member"})).await?;
            put(call, json!({"action": "promote", "role": "mod"})).await?
        }
        _ => call.send_single_request().await?,
    };
    match find_mismatch(call, &changed.body) {
        None => Ok(changed),
        Some(description) => {
            Err(ToolError::failed(format!("the site reported success, but {description}")))
        }
    }
}

async fn put(call: &ToolCall<'_>, body: Value) -> Result<SiteResponse, ToolError> {
    call.request(&SiteRequest::new(Method::PUT, call.path(call.spec.route)).with_body(body)).await
}

/// The difference from the requested rank, if the response contains ranks.
fn find_mismatch(call: &ToolCall<'_>, body: &Value) -> Option<&'static str> {
    let member = if body.is_array() { &body[0] } else { body };
    let has = |key: &str| member[key].as_bool();
    let (admin, moderator, banned) = (has("is_admin"), has("is_mod"), has("is_banned"));
    match (call.text("action")?, call.text("role").unwrap_or("member")) {
        ("ban", _) if banned == Some(false) => Some("the member is not banned"),
        ("unban", _) if banned == Some(true) => Some("the member is still banned"),
        ("promote", "admin") if admin == Some(false) => Some("the member is not an organizer"),
        ("promote" | "demote", "mod") if moderator == Some(false) => {
            Some("the member is not a moderator")
        }
        ("demote", _) if admin == Some(true) => Some("the member is still an organizer"),
        ("demote", "member") if moderator == Some(true) => Some("the member is still a moderator"),
        _ => None,
    }
}
