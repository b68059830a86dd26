//! Photos, videos and documents of members and groups.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::spec::{
    ArgumentSpec, PAGE, PER_PAGE, SiteArgumentType, ToolSpec, Verb, optional, required, tool,
};
use super::tool_call::{ToolCall, delete_and_verify, whole_number};
use crate::site::{SiteRequest, SiteResponse};
use crate::tools::tool_call::entities::GROUP;
use crate::tools::tool_call::upload::{DATA, FILE_NAME, read_file_argument};

const PRIVACY: SiteArgumentType =
    SiteArgumentType::Choice(&["public", "loggedin", "onlyme", "friends", "grouponly"]);
const USER: ArgumentSpec = optional("user_id", SiteArgumentType::Id, "Only those of this member");
const IN_GROUP: ArgumentSpec =
    optional("group_id", SiteArgumentType::Id, "Only those of this group").naming(&GROUP);
const ACTIVITY: ArgumentSpec =
    optional("activity_id", SiteArgumentType::Id, "Only those of this activity");
const SEARCH: ArgumentSpec = optional("search", SiteArgumentType::Text, "Search by title");
const TO_GROUP: ArgumentSpec =
    optional("group_id", SiteArgumentType::Id, "ID of the group to add it to")
        .not_sent()
        .naming(&GROUP);
const SEEN_BY: ArgumentSpec =
    optional("privacy", PRIVACY, "Who sees it (default: public)").not_sent();
const CONTENT: ArgumentSpec =
    optional("content", SiteArgumentType::Text, "What to say about it").not_sent();
const ALBUM: ArgumentSpec =
    optional("album_id", SiteArgumentType::Id, "ID of the album to add it to").not_sent();
const FOLDER: ArgumentSpec =
    optional("folder_id", SiteArgumentType::Id, "ID of the folder to add it to").not_sent();

/// The filters of lists of photos and of videos.
const IN_ALBUMS: &[ArgumentSpec] = &[
    USER,
    IN_GROUP,
    ACTIVITY,
    optional("album_id", SiteArgumentType::Id, "Only those of this album"),
    SEARCH,
    PAGE,
    PER_PAGE,
];

pub(super) const TOOLS: &[ToolSpec] = &[
    list_tool("buddyboss_list_media", "/buddyboss/v1/media", "Photo", "List photos.")
        .with_arguments(IN_ALBUMS),
    get_tool("buddyboss_get_media", "/buddyboss/v1/media/{id}", "Photo", "Get one photo.")
        .with_arguments(&[required("id", SiteArgumentType::Id, "Photo ID")]),
    upload_tool(
        "buddyboss_upload_media",
        "/buddyboss/v1/media",
        "Photo",
        "Upload a photo as yourself, to your profile or to a group.",
    )
    .with_arguments(&[FILE_NAME, DATA, TO_GROUP, ALBUM, SEEN_BY, CONTENT]),
    delete_tool(
        "buddyboss_delete_media",
        "/buddyboss/v1/media/{id}",
        "Photo",
        "Delete a photo permanently.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Photo ID")]),
    list_tool("buddyboss_list_videos", "/buddyboss/v1/video", "Video", "List videos.")
        .with_arguments(IN_ALBUMS),
    get_tool("buddyboss_get_video", "/buddyboss/v1/video/{id}", "Video", "Get one video.")
        .with_arguments(&[required("id", SiteArgumentType::Id, "Video ID")]),
    upload_tool(
        "buddyboss_upload_video",
        "/buddyboss/v1/video",
        "Video",
        "Upload a video as yourself, to your profile or to a group.",
    )
    .with_arguments(&[FILE_NAME, DATA, TO_GROUP, ALBUM, SEEN_BY, CONTENT]),
    delete_tool(
        "buddyboss_delete_video",
        "/buddyboss/v1/video/{id}",
        "Video",
        "Delete a video permanently.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Video ID")]),
    list_tool(
        "buddyboss_list_documents",
        "/buddyboss/v1/document",
        "Document",
        "List documents and folders.",
    )
    .with_arguments(&[
        USER,
        IN_GROUP,
        ACTIVITY,
        optional("folder_id", SiteArgumentType::Id, "Only those of this folder"),
        optional(
            "type",
            SiteArgumentType::Choice(&["both", "document", "folder"]),
            "Which (default: both)",
        ),
        SEARCH,
        PAGE,
        PER_PAGE,
    ]),
    get_tool(
        "buddyboss_get_document",
        "/buddyboss/v1/document/{id}",
        "Document",
        "Get one document.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Document ID")]),
    upload_tool(
        "buddyboss_upload_document",
        "/buddyboss/v1/document",
        "Document",
        "Upload a document as yourself, to your profile or to a group.",
    )
    .with_arguments(&[FILE_NAME, DATA, TO_GROUP, FOLDER, SEEN_BY, CONTENT]),
    delete_tool(
        "buddyboss_delete_document",
        "/buddyboss/v1/document/{id}",
        "Document",
        "Delete a document permanently.",
    )
    .with_arguments(&[required("id", SiteArgumentType::Id, "Document ID")]),
];

const fn list_tool(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> ToolSpec {
    tool(Verb::Get, name, route, noun, about).with_per_user_list()
}

const fn get_tool(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> ToolSpec {
    tool(Verb::Get, name, route, noun, about)
}

/// The platform checks the login before it lets a user add media.
const fn upload_tool(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> ToolSpec {
    tool(Verb::Post, name, route, noun, about).require_visible_login().with_custom_run(upload)
}

const fn delete_tool(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> ToolSpec {
    tool(Verb::Delete, name, route, noun, about)
        .require_visible_login()
        .with_custom_run(delete_and_verify)
}

/// Uploads a file, which is not visible yet, and then adds it to its place.
fn upload<'a>(call: &'a ToolCall<'a>) -> BoxFuture<'a, Result<SiteResponse, ToolError>> {
    Box::pin(async move {
        let route = call.spec.route;
        let uploaded = SiteRequest::new(Method::POST, format!("{route}/upload"));
        let uploaded = call.request(&uploaded.with_file(read_file_argument(call)?)).await?.body;
        let id = whole_number(&uploaded["upload_id"]).or_else(|| whole_number(&uploaded["id"]));
        let Some(id) = id.filter(|id| *id > 0) else {
            return Err(ToolError::failed(
                "the site accepted the file, but returned no upload; it was not added",
            ));
        };
        let half = |error| match error {
            ToolError::Failed(reason) => ToolError::failed(format!(
                "the file was uploaded (attachment {id}), but not added: {reason}"
            )),
            other => other,
        };
        let request = SiteRequest::new(Method::POST, route)
            .with_body(Value::Object(attachment_members(call, id)));
        let added = call.request(&request).await.map_err(half)?;
        let first = if added.body.is_array() { &added.body[0] } else { &added.body };
        let Some(made) = whole_number(&first["id"]).filter(|id| *id > 0) else {
            return Err(half(ToolError::failed("the site did not return the created item")));
        };
        // The result is read from the site.
        call.request(&SiteRequest::get(format!("{route}/{made}"))).await.map_err(half)
    })
}

/// The body of the request that adds an upload.
fn attachment_members(call: &ToolCall<'_>, upload: u64) -> Map<String, Value> {
    let ids = if call.spec.route.ends_with("document") { "document_ids" } else { "upload_ids" };
    let mut body = Map::from_iter([(ids.to_owned(), json!([upload]))]);
    for name in ["group_id", "album_id", "folder_id", "privacy", "content"] {
        if let Some(value) = call.arguments.get(name) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    body
}
