//! Preserves the author of a feed post: an update without the author would make the caller the author.

use creole::ToolError;
use serde_json::{Map, Value, json};

use crate::login::users::SiteUser;
use crate::site::{Site, SiteRequest};
use crate::write_guard;

/// Adds the author to the update of a post, if the call does not name one.
pub(super) async fn keep_author(
    site: &Site,
    user: &SiteUser,
    route: &str,
    arguments: &mut Map<String, Value>,
) -> Result<(), ToolError> {
    if !write_guard::is_activity_route(route) || arguments.contains_key("user_id") {
        return Ok(());
    }
    let request = SiteRequest::get(route).with_query("_fields", "id,user_id");
    let post = site.request(Some(&user.credentials), &request).await;
    let post = post.map_err(|error| ToolError::failed(error.to_message(false)))?.body;
    let author = post["user_id"].as_u64().or_else(|| post["user_id"].as_str()?.parse().ok());
    let Some(author) = author else {
        return Err(ToolError::failed(
            "the site does not return the author of this item, so an update could change the \
                author; nothing was changed",
        ));
    };
    arguments.insert("user_id".to_owned(), json!(author));
    Ok(())
}
