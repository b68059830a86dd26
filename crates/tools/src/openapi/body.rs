//! The body of a request, as its document describes it: members that become arguments, or one argument for all.

use super::library::{Library, Node};
use super::parameter::{member_names, style_named};
use super::schema::is_read_only;
use super::style::Style;

/// The name of the argument that is the whole body.
pub(super) const WHOLE: &str = "body";
/// How many schemas may be put together to one.
const MOST_PARTS: usize = 64;
/// How many members become arguments; of more, the body is one argument.
const MOST_MEMBERS: usize = 500;

/// A body.
pub(super) struct Body<'a> {
    pub(super) kind: Kind,
    pub(super) required: bool,
    /// Whether the only member is the body itself.
    pub(super) is_whole: bool,
    pub(super) members: Vec<Member<'a>>,
    /// What there is to know.
    pub(super) notes: Vec<String>,
}

/// How a body is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Json(String),
    Form,
    Multipart,
    Text(String),
}

/// A member of a body.
pub(super) struct Member<'a> {
    pub(super) name: String,
    pub(super) schema: Node<'a>,
    pub(super) required: bool,
    /// How it is written in a form.
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) names: Vec<String>,
}

/// The body of an operation, if it has one.
///
/// # Errors
/// Why its body cannot be sent.
pub(super) fn body<'a>(
    library: &'a Library,
    operation: Node<'a>,
) -> Result<Option<Body<'a>>, String> {
    let Some(written) = operation.get("requestBody") else { return Ok(None) };
    let node = library.resolve(written).map_err(|why| format!("its body refers to {why}"))?;
    let required = node.is("required");
    let Some((kind, content)) = chosen(node)? else { return Ok(None) };
    let schema = content.get("schema");
    let flat = schema.and_then(|schema| members(library, schema, &mut 0));
    let is_form = matches!(kind, Kind::Form | Kind::Multipart);
    if is_form && !required && flat.as_ref().is_some_and(Vec::is_empty) {
        // A form without a field that need not be sent is none.
        return Ok(None);
    }
    let flat = flat.filter(|members| !members.is_empty());
    let mut body = Body { kind, required, is_whole: false, members: Vec::new(), notes: Vec::new() };
    match (&body.kind, flat) {
        (Kind::Json(_), Some(found)) => body.members = found,
        (Kind::Form, Some(found)) => {
            let encoding = content.get("encoding");
            body.members = found.into_iter().map(|it| in_form(library, it, encoding)).collect();
        }
        (Kind::Multipart, Some(found)) => {
            for member in found {
                match (is_file(library, member.schema), member.required) {
                    (false, _) => body.members.push(member),
                    (true, true) => return Err("its body has files, which are not sent".to_owned()),
                    (true, false) => {
                        body.notes.push(format!("the file `{}` cannot be sent", member.name));
                    }
                }
            }
        }
        (Kind::Form | Kind::Multipart, None) => {
            return Err("the fields of its form are not described".to_owned());
        }
        (Kind::Json(_) | Kind::Text(_), _) => {
            let schema = schema.unwrap_or(Node { value: &serde_json::Value::Null, file: 0 });
            body.is_whole = true;
            body.members = vec![member(WHOLE, schema, required)];
        }
    }
    Ok(Some(body))
}

fn member<'a>(name: &str, schema: Node<'a>, required: bool) -> Member<'a> {
    let name = name.to_owned();
    Member { name, schema, required, style: Style::Form, explode: true, names: Vec::new() }
}

/// The kind of body that suits best, of those that the service takes.
fn chosen(node: Node<'_>) -> Result<Option<(Kind, Node<'_>)>, String> {
    let content = node.get("content").into_iter().flat_map(Node::members);
    let mut best: Option<(usize, Kind, Node<'_>)> = None;
    let mut refused = None;
    for (written, content) in content {
        let media = written.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let (rank, kind) = match media.as_str() {
            "application/json" => (0, Kind::Json(media)),
            "*/*" | "application/*" => (1, Kind::Json("application/json".to_owned())),
            json if json.ends_with("+json") && !json.contains('*') => (2, Kind::Json(media)),
            "application/x-www-form-urlencoded" => (3, Kind::Form),
            "multipart/form-data" => (4, Kind::Multipart),
            text if text.starts_with("text/") && !text.contains('*') => (5, Kind::Text(media)),
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
            Err(format!("its body is `{media}`; only JSON, forms and text are sent"))
        }
        (None, None) => Ok(None),
    }
}

/// The members of a schema that is an object and nothing else, also where it is put together of several.
fn members<'a>(
    library: &'a Library,
    schema: Node<'a>,
    parts: &mut usize,
) -> Option<Vec<Member<'a>>> {
    *parts += 1;
    let node = library.resolve(schema).ok().filter(|_| *parts <= MOST_PARTS)?;
    let chooses = ["oneOf", "anyOf", "not", "if"].iter().any(|key| node.get(key).is_some());
    let kind = node.get("type").map(|kind| kind.value);
    let is_object = kind.is_none_or(|kind| {
        kind == "object"
            || kind.as_array().is_some_and(|kinds| kinds.iter().any(|it| it == "object"))
    });
    if chooses || !is_object {
        return None;
    }
    let mut found: Vec<Member<'a>> = Vec::new();
    for part in node.get("allOf").into_iter().flat_map(Node::items) {
        for member in members(library, part, parts)? {
            found.retain(|it| it.name != member.name);
            found.push(member);
        }
    }
    let own = node.get("properties").and_then(|own| own.value.as_object());
    if found.len() + own.map_or(0, serde_json::Map::len) > MOST_MEMBERS {
        return None;
    }
    for (name, own) in node.get("properties").into_iter().flat_map(Node::members) {
        found.retain(|it| it.name != name);
        if !is_read_only(library, own) {
            found.push(member(name, own, false));
        }
    }
    let required = node.get("required").into_iter().flat_map(Node::items);
    for name in required.filter_map(|name| name.value.as_str()) {
        found.iter_mut().filter(|it| it.name == name).for_each(|it| it.required = true);
    }
    Some(found)
}

/// A member of a form: how it is written stands in `encoding`; what has members is JSON if nothing stands there.
fn in_form<'a>(library: &Library, member: Member<'a>, encoding: Option<Node<'_>>) -> Member<'a> {
    let own = encoding.and_then(|encoding| encoding.get(&member.name));
    let names = member_names(library, member.schema);
    let is_json = own.and_then(|own| own.text("contentType")).is_some_and(|it| it.contains("json"));
    let style = own.and_then(|own| own.text("style")).and_then(style_named);
    let style = match (style, is_json) {
        (Some(style), _) => style,
        (None, true) => Style::Json,
        (None, false) if !names.is_empty() => Style::Json,
        (None, false) => Style::Form,
    };
    let explode = own.and_then(|own| own.get("explode")).and_then(|it| it.value.as_bool());
    Member { style, names, explode: explode.unwrap_or(style == Style::Form), ..member }
}

/// Whether a field of a form is a file.
fn is_file(library: &Library, schema: Node<'_>) -> bool {
    let Ok(node) = library.resolve(schema) else { return false };
    let of_items = node.get("items").is_some_and(|items| {
        library.resolve(items).is_ok_and(|items| items.text("format") == Some("binary"))
    });
    of_items
        || matches!(node.text("format"), Some("binary" | "base64"))
        || node.get("contentMediaType").is_some_and(|media| media.value != "text/plain")
}
