//! Photos, videos and documents of members and groups.

use creole::{BoxFuture, ToolError};
use http::Method;
use serde_json::{Map, Value, json};

use super::errand::{Errand, deleted, whole_number};
use super::spec::{Argument, Kind, PAGE, PER_PAGE, Spec, Verb, may, must, tool};
use super::things::GROUP;
use super::upload::{DATA, FILE_NAME, file};
use crate::wordpress::site::{Answered, Asked};

const PRIVACY: Kind = Kind::Choice(&["public", "loggedin", "onlyme", "friends", "grouponly"]);
const USER: Argument = may("user_id", Kind::Id, "Only those of this member");
const IN_GROUP: Argument = may("group_id", Kind::Id, "Only those of this group").of(&GROUP);
const ACTIVITY: Argument = may("activity_id", Kind::Id, "Only those of this activity");
const SEARCH: Argument = may("search", Kind::Text, "Search by title");
const TO_GROUP: Argument =
    may("group_id", Kind::Id, "ID of the group to add it to").kept().of(&GROUP);
const SEEN_BY: Argument = may("privacy", PRIVACY, "Who sees it (default: public)").kept();
const CONTENT: Argument = may("content", Kind::Text, "What to say about it").kept();
const ALBUM: Argument = may("album_id", Kind::Id, "ID of the album to add it to").kept();
const FOLDER: Argument = may("folder_id", Kind::Id, "ID of the folder to add it to").kept();

pub(super) const TOOLS: &[Spec] = &[
    list("buddyboss_list_media", "/buddyboss/v1/media", "Photo", "List photos.").takes(&[
        USER,
        IN_GROUP,
        ACTIVITY,
        may("album_id", Kind::Id, "Only those of this album"),
        SEARCH,
        PAGE,
        PER_PAGE,
    ]),
    one("buddyboss_get_media", "/buddyboss/v1/media/{id}", "Photo", "Get one photo.")
        .takes(&[must("id", Kind::Id, "Photo ID")]),
    add(
        "buddyboss_upload_media",
        "/buddyboss/v1/media",
        "Photo",
        "Upload a photo as yourself, to your profile or to a group.",
    )
    .takes(&[FILE_NAME, DATA, TO_GROUP, ALBUM, SEEN_BY, CONTENT]),
    remove(
        "buddyboss_delete_media",
        "/buddyboss/v1/media/{id}",
        "Photo",
        "Delete a photo for good.",
    )
    .takes(&[must("id", Kind::Id, "Photo ID")]),
    list("buddyboss_list_videos", "/buddyboss/v1/video", "Video", "List videos.").takes(&[
        USER,
        IN_GROUP,
        ACTIVITY,
        may("album_id", Kind::Id, "Only those of this album"),
        SEARCH,
        PAGE,
        PER_PAGE,
    ]),
    one("buddyboss_get_video", "/buddyboss/v1/video/{id}", "Video", "Get one video.")
        .takes(&[must("id", Kind::Id, "Video ID")]),
    add(
        "buddyboss_upload_video",
        "/buddyboss/v1/video",
        "Video",
        "Upload a video as yourself, to your profile or to a group.",
    )
    .takes(&[FILE_NAME, DATA, TO_GROUP, ALBUM, SEEN_BY, CONTENT]),
    remove(
        "buddyboss_delete_video",
        "/buddyboss/v1/video/{id}",
        "Video",
        "Delete a video for good.",
    )
    .takes(&[must("id", Kind::Id, "Video ID")]),
    list(
        "buddyboss_list_documents",
        "/buddyboss/v1/document",
        "Document",
        "List documents and folders.",
    )
    .takes(&[
        USER,
        IN_GROUP,
        ACTIVITY,
        may("folder_id", Kind::Id, "Only those of this folder"),
        may("type", Kind::Choice(&["both", "document", "folder"]), "Which (default: both)"),
        SEARCH,
        PAGE,
        PER_PAGE,
    ]),
    one("buddyboss_get_document", "/buddyboss/v1/document/{id}", "Document", "Get one document.")
        .takes(&[must("id", Kind::Id, "Document ID")]),
    add(
        "buddyboss_upload_document",
        "/buddyboss/v1/document",
        "Document",
        "Upload a document as yourself, to your profile or to a group.",
    )
    .takes(&[FILE_NAME, DATA, TO_GROUP, FOLDER, SEEN_BY, CONTENT]),
    remove(
        "buddyboss_delete_document",
        "/buddyboss/v1/document/{id}",
        "Document",
        "Delete a document for good.",
    )
    .takes(&[must("id", Kind::Id, "Document ID")]),
];

const fn list(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> Spec {
    tool(Verb::Get, name, route, noun, about).own()
}

const fn one(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> Spec {
    tool(Verb::Get, name, route, noun, about)
}

/// The platform looks who is logged in before it lets somebody add something.
const fn add(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> Spec {
    tool(Verb::Post, name, route, noun, about).early().by(upload)
}

const fn remove(
    name: &'static str,
    route: &'static str,
    noun: &'static str,
    about: &'static str,
) -> Spec {
    tool(Verb::Delete, name, route, noun, about).early().by(deleted)
}

/// A file is uploaded first, which shows it to nobody, and then added where it is seen.
fn upload<'a>(errand: &'a Errand<'a>) -> BoxFuture<'a, Result<Answered, ToolError>> {
    Box::pin(async move {
        let route = errand.spec.route;
        let uploaded = Asked::new(Method::POST, format!("{route}/upload"));
        let uploaded = errand.ask(&uploaded.file(file(errand)?)).await?.body;
        let id = whole_number(&uploaded["upload_id"]).or_else(|| whole_number(&uploaded["id"]));
        let Some(id) = id.filter(|id| *id > 0) else {
            return Err(ToolError::failed(
                "the site took the file, but names no upload; it was not added",
            ));
        };
        let half = |error| match error {
            ToolError::Failed(why) => ToolError::failed(format!(
                "the file was uploaded (attachment {id}), but not added: {why}"
            )),
            other => other,
        };
        let asked = Asked::new(Method::POST, route).body(Value::Object(added(errand, id)));
        let added = errand.ask(&asked).await.map_err(half)?;
        let first = if added.body.is_array() { &added.body[0] } else { &added.body };
        let Some(made) = whole_number(&first["id"]).filter(|id| *id > 0) else {
            return Err(half(ToolError::failed("the site names nothing that was made")));
        };
        // What it says is read again.
        errand.ask(&Asked::get(format!("{route}/{made}"))).await.map_err(half)
    })
}

/// What is sent to add an upload.
fn added(errand: &Errand<'_>, upload: u64) -> Map<String, Value> {
    let ids = if errand.spec.route.ends_with("document") { "document_ids" } else { "upload_ids" };
    let mut body = Map::from_iter([(ids.to_owned(), json!([upload]))]);
    for name in ["group_id", "album_id", "folder_id", "privacy", "content"] {
        if let Some(value) = errand.arguments.get(name) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    body
}
