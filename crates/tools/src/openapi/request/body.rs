//! Request bodies in OpenAPI documents: their members become arguments, or the whole body is one argument.

use crate::openapi::document_set::{DocumentSet, Node};
use crate::openapi::parameter::{member_names, style_from_name};
use crate::openapi::schema::is_read_only;
use crate::openapi::style::Style;

/// The name of the argument for the whole body.
pub(in crate::openapi) const WHOLE_BODY_ARGUMENT: &str = "body";
/// The media type of bytes without a known type.
const OCTET_STREAM: &str = "application/octet-stream";
/// Maximum number of schemas that are merged.
const MAX_PARTS: usize = 64;
/// Maximum number of members that become arguments. A larger body is one argument.
const MAX_MEMBERS: usize = 500;

/// A request body.
pub(in crate::openapi) struct RequestBody<'a> {
    pub(in crate::openapi) kind: BodyKind,
    pub(in crate::openapi) required: bool,
    /// Whether the only member is the body itself.
    pub(in crate::openapi) is_whole: bool,
    pub(in crate::openapi) members: Vec<BodyMember<'a>>,
    /// Notes for the report.
    pub(in crate::openapi) notes: Vec<String>,
}

/// The encoding of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::openapi) enum BodyKind {
    Json(String),
    Form,
    Multipart,
    Text(String),
    /// Bytes of this media type.
    Bytes(String),
}

/// A member of a body.
pub(in crate::openapi) struct BodyMember<'a> {
    pub(in crate::openapi) name: String,
    pub(in crate::openapi) schema: Node<'a>,
    pub(in crate::openapi) required: bool,
    /// Its style in a form.
    pub(in crate::openapi) style: Style,
    pub(in crate::openapi) explode: bool,
    pub(in crate::openapi) names: Vec<String>,
    /// The media type, if it is a file or an array of files.
    pub(in crate::openapi) file: Option<String>,
}

/// The body of an operation, if it has one.
///
/// # Errors
/// The reason why its body cannot be sent.
pub(in crate::openapi) fn read_body<'a>(
    library: &'a DocumentSet,
    operation: Node<'a>,
) -> Result<Option<RequestBody<'a>>, String> {
    let Some(written) = operation.get("requestBody") else { return Ok(None) };
    let node = library
        .resolve(written)
        .map_err(|reason| format!("its body has a reference to {reason}"))?;
    let required = node.is_true("required");
    let Some((kind, content)) = choose_media_type(library, node)? else { return Ok(None) };
    let schema = content.get("schema");
    let flat = schema.and_then(|schema| read_members(library, schema, &mut 0));
    let is_form = matches!(kind, BodyKind::Form | BodyKind::Multipart);
    if is_form && !required && flat.as_ref().is_some_and(Vec::is_empty) {
        // An optional form without fields is no body.
        return Ok(None);
    }
    let flat = flat.filter(|members| !members.is_empty());
    let mut body =
        RequestBody { kind, required, is_whole: false, members: Vec::new(), notes: Vec::new() };
    match (&body.kind, flat) {
        (BodyKind::Json(_), Some(found)) => body.members = found,
        (BodyKind::Form, Some(found)) => {
            let encoding = content.get("encoding");
            body.members = found
                .into_iter()
                .map(|member| with_form_encoding(library, member, encoding))
                .collect();
        }
        (BodyKind::Multipart, Some(found)) => {
            let encoding = content.get("encoding");
            body.members = found
                .into_iter()
                .map(|member| with_multipart_encoding(library, member, encoding))
                .collect();
        }
        (BodyKind::Form | BodyKind::Multipart, None) => {
            return Err("the fields of its form are not described".to_owned());
        }
        (kind @ (BodyKind::Json(_) | BodyKind::Text(_) | BodyKind::Bytes(_)), _) => {
            let schema = schema.unwrap_or(Node { value: &serde_json::Value::Null, file: 0 });
            let file = if let BodyKind::Bytes(media) = kind { Some(media.clone()) } else { None };
            body.is_whole = true;
            body.members =
                vec![BodyMember { file, ..new_member(WHOLE_BODY_ARGUMENT, schema, required) }];
        }
    }
    let files = body.members.iter().filter(|member| member.file.is_some());
    body.notes.extend(files.map(|member| format!("`{}` is bytes, given in Base64", member.name)));
    Ok(Some(body))
}

fn new_member<'a>(name: &str, schema: Node<'a>, required: bool) -> BodyMember<'a> {
    let name = name.to_owned();
    let (style, names) = (Style::Form, Vec::new());
    BodyMember { name, schema, required, style, explode: true, names, file: None }
}

/// The most suitable kind of body among those that the service accepts.
fn choose_media_type<'a>(
    library: &DocumentSet,
    node: Node<'a>,
) -> Result<Option<(BodyKind, Node<'a>)>, String> {
    let content = node.get("content").into_iter().flat_map(Node::members);
    let mut best: Option<(usize, BodyKind, Node<'a>)> = None;
    let mut refused = None;
    for (output, content) in content {
        let media = output.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (rank, kind) = match media.as_str() {
            "application/json" => (0, BodyKind::Json(media)),
            "*/*" | "application/*" => (1, BodyKind::Json("application/json".to_owned())),
            json if json.ends_with("+json") && !json.contains('*') => (2, BodyKind::Json(media)),
            "application/x-www-form-urlencoded" => (3, BodyKind::Form),
            "multipart/form-data" => (4, BodyKind::Multipart),
            text if text.starts_with("text/") && !text.contains('*') => (5, BodyKind::Text(media)),
            bytes if is_binary(library, bytes, content) => (6, BodyKind::Bytes(media)),
            _ => {
                refused = Some(media);
                continue;
            }
        };
        if best.as_ref().is_none_or(|(other, ..)| rank < *other) {
            best = Some((rank, kind, content));
        }
    }
    match (best, refused) {
        (Some((_, kind, content)), _) => Ok(Some((kind, content))),
        (None, Some(media)) => {
            Err(format!("its body is `{media}`; only JSON, forms, text and bytes are supported"))
        }
        (None, None) => Ok(None),
    }
}

/// The members of a schema that describes only an object, including merged schemas.
fn read_members<'a>(
    library: &'a DocumentSet,
    schema: Node<'a>,
    parts: &mut usize,
) -> Option<Vec<BodyMember<'a>>> {
    *parts += 1;
    let node = library.resolve(schema).ok().filter(|_| *parts <= MAX_PARTS)?;
    let chooses = ["oneOf", "anyOf", "not", "if"].iter().any(|key| node.get(key).is_some());
    let kind = node.get("type").map(|kind| kind.value);
    let is_object = kind.is_none_or(|kind| {
        kind == "object"
            || kind.as_array().is_some_and(|kinds| kinds.iter().any(|value| value == "object"))
    });
    if chooses || !is_object {
        return None;
    }
    let mut found: Vec<BodyMember<'a>> = Vec::new();
    for part in node.get("allOf").into_iter().flat_map(Node::items) {
        for member in read_members(library, part, parts)? {
            found.retain(|it| it.name != member.name);
            found.push(member);
        }
    }
    let own = node.get("properties").and_then(|own| own.value.as_object());
    if found.len() + own.map_or(0, serde_json::Map::len) > MAX_MEMBERS {
        return None;
    }
    for (name, own) in node.get("properties").into_iter().flat_map(Node::members) {
        found.retain(|it| it.name != name);
        if !is_read_only(library, own) {
            found.push(new_member(name, own, false));
        }
    }
    let required = node.get("required").into_iter().flat_map(Node::items);
    for name in required.filter_map(|name| name.value.as_str()) {
        found.iter_mut().filter(|it| it.name == name).for_each(|it| it.required = true);
    }
    Some(found)
}

/// A form member with the style from `encoding`. Without one, a value with members is JSON.
fn with_form_encoding<'a>(
    library: &DocumentSet,
    member: BodyMember<'a>,
    encoding: Option<Node<'_>>,
) -> BodyMember<'a> {
    let own = encoding.and_then(|encoding| encoding.get(&member.name));
    let names = member_names(library, member.schema);
    let is_json =
        own.and_then(|own| own.text("contentType")).is_some_and(|text| text.contains("json"));
    let style = own.and_then(|own| own.text("style")).and_then(style_from_name);
    let style = match (style, is_json) {
        (Some(style), _) => style,
        (None, true) => Style::Json,
        (None, false) if !names.is_empty() => Style::Json,
        (None, false) => Style::Form,
    };
    let explode = own.and_then(|own| own.get("explode")).and_then(|node| node.value.as_bool());
    BodyMember { style, names, explode: explode.unwrap_or(style == Style::Form), ..member }
}

/// A multipart member: a file or a text. Its media type is in `encoding` or in its schema.
fn with_multipart_encoding<'a>(
    library: &DocumentSet,
    member: BodyMember<'a>,
    encoding: Option<Node<'_>>,
) -> BodyMember<'a> {
    let Some(text) = file_media_type(library, member.schema) else { return member };
    let own = encoding.and_then(|encoding| encoding.get(&member.name));
    let own = own.and_then(|own| own.text("contentType")).filter(|output| is_concrete(output));
    let media =
        own.or(text.filter(|output| is_concrete(output))).unwrap_or(OCTET_STREAM).to_owned();
    BodyMember { file: Some(media), ..member }
}

/// Whether bodies of this media type are bytes, and not a text with a grammar.
fn is_binary(library: &DocumentSet, media: &str, content: Node<'_>) -> bool {
    let is_known = ["image/", "audio/", "video/"].iter().any(|kind| media.starts_with(kind));
    let is_said =
        || content.get("schema").is_some_and(|schema| file_media_type(library, schema).is_some());
    is_concrete(media) && (media == OCTET_STREAM || is_known || is_said())
}

/// The media type of a file or an array of files, if given; `None` for other schemas. Encoded content is text (JSON
/// Schema 2020-12, `contentEncoding`).
fn file_media_type<'a>(library: &'a DocumentSet, schema: Node<'a>) -> Option<Option<&'a str>> {
    let node = library.resolve(schema).ok()?;
    let node = match node.get("items") {
        Some(items) => library.resolve(items).ok()?,
        None => node,
    };
    let media = node.text("contentMediaType");
    let is_file =
        node.text("format") == Some("binary") || media.is_some_and(|text| text != "text/plain");
    (is_file && node.get("contentEncoding").is_none()).then_some(media)
}

/// Whether a media type is concrete, and not a pattern or a list.
fn is_concrete(media: &str) -> bool {
    !media.contains(['*', ',', '\r', '\n']) && media.contains('/')
}
