//! The forum of a group. The routes of groups set a mark alone; the settings of a group make the forum.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::errand::{Errand, whole_number};
use crate::wordpress::guard::LATE;
use crate::wordpress::site::{Answered, Asked};

/// Creates a group, and then its forum where one is asked for.
pub(super) fn create_group<'a>(
    errand: &'a Errand<'a>,
) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        // Whether the forum can be made is known before the group is.
        let wants = is_wanted(errand).await?;
        let created = errand.plain().await?;
        match (wants, whole_number(&created.body["id"])) {
            (Some(true), Some(id)) => set(errand, id, true, "the group was created").await,
            _ => Ok(created),
        }
    })
}

/// Changes a group, and then whether it has a forum.
pub(super) fn update_group<'a>(
    errand: &'a Errand<'a>,
) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let wants = is_wanted(errand).await?;
        let asked = errand.request();
        let is_empty = asked.body.as_ref().and_then(Value::as_object).is_none_or(Map::is_empty);
        match (wants, is_empty) {
            (None, true) => Err(ToolError::failed(
                "nothing to change: give name, description, status, enable_forum or parent_id",
            )),
            (None, false) => errand.ask(&asked).await,
            (Some(wants), is_empty) => {
                if !is_empty {
                    errand.ask(&asked).await?;
                }
                let done = if is_empty { "nothing was changed" } else { "the group was changed" };
                set(errand, errand.number("id").unwrap_or_default(), wants, done).await
            }
        }
    })
}

/// Whether the group shall have a forum, where the call says so. The platform must see who makes it.
async fn is_wanted(errand: &Errand<'_>) -> Result<Option<bool>, ToolError> {
    let wanted = errand.arguments.get("enable_forum").and_then(Value::as_bool);
    match wanted.is_some() && !errand.site.is_early(errand.visitor).await {
        true => Err(ToolError::failed(format!("`enable_forum`: {LATE}"))),
        false => Ok(wanted),
    }
}

/// Gives a group a forum or takes it away, and looks whether that was done.
async fn set(errand: &Errand<'_>, id: u64, wants: bool, done: &str) -> Result<Answered, ToolError> {
    let settings = Asked::new(Method::PUT, format!("/buddyboss/v1/groups/{id}/settings"));
    let body = json!({"nav": "forum", "fields": {"bbp-edit-group-forum": wants}});
    let half = |why: String| ToolError::failed(format!("{done}, but its forum was not: {why}"));
    if let Err(trouble) = errand.try_ask(&settings.body(body)).await {
        return Err(half(trouble.told(true)));
    }
    let group = errand.ask(&Asked::get(format!("/buddyboss/v1/groups/{id}"))).await?;
    let has = whole_number(&group.body["forum"]).is_some_and(|forum| forum > 0);
    match has == wants {
        true => Ok(group),
        false if wants => {
            Err(half("the site made no forum; are forums of groups switched on?".to_owned()))
        }
        false => Err(half("the group still has its forum".to_owned())),
    }
}
