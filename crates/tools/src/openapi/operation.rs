//! One operation of a document as a tool.

use std::collections::HashSet;
use std::sync::LazyLock;

use creole::proto::wire::Raw;
use serde_json::{Map, Value, json};

use super::body::{Body, Kind, Member, body};
use super::clean::sentence;
use super::library::{Library, Node};
use super::names;
use super::parameter::{Parameter, Place, parameters};
use super::request::{Operation, Payload, Piece};
use super::schema::Schemas;
use super::security::Doors;
use super::style::Slot;
use super::upload::Field;
use crate::recipe::http::{Verb, encode};

/// How many bytes the schema of a tool's arguments may have.
const MOST_SCHEMA: usize = 16_384;
/// How many bytes the descriptions of parameters may have together.
const MOST_ABOUT: usize = 4_096;

/// An operation in its document.
pub(super) struct Written<'a> {
    pub(super) path: &'a str,
    pub(super) verb: Verb,
    pub(super) item: Node<'a>,
    pub(super) node: Node<'a>,
}

/// What becomes a tool.
pub(super) struct Made {
    pub(super) schema: Raw,
    pub(super) operation: Operation,
    pub(super) notes: Vec<String>,
}

/// What an argument is called, and what is announced of it.
struct Argument<'a> {
    name: String,
    schema: Node<'a>,
    about: &'a str,
    required: bool,
    is_file: bool,
}

/// Makes a tool of an operation.
///
/// # Errors
/// Why it cannot become one.
pub(super) fn make<'a>(
    library: &'a Library,
    schemas: &mut Schemas<'a>,
    doors: &Doors,
    written: &Written<'a>,
    has_auth: bool,
) -> Result<Made, String> {
    let path = pieces(written.path)?;
    let in_path: Vec<&str> =
        path.iter().filter_map(|piece| piece.as_ref().err().copied()).collect();
    let mut parameters = parameters(library, written.item, written.node, &in_path)?;
    parameters.retain(|it| !doors.has(it.place.name(), &it.name));
    // A request that only reads has no body, whatever a document says.
    let body = match written.verb {
        Verb::Get => None,
        _ => body(library, written.node)?,
    };
    let mut notes = body.as_ref().map(|body| body.notes.clone()).unwrap_or_default();
    let security = written.node.get("security").or_else(|| library.document().get("security"));
    let credentials = doors.of(security).unwrap_or_else(|missing| {
        if !has_auth {
            notes.push(format!("there is no secret for `{}`", missing.join("` and `")));
        }
        Vec::new()
    });
    let mut arguments = Vec::new();
    let mut taken = HashSet::new();
    let payload = body.map(|body| payload(body, &mut arguments, &mut taken));
    let mut operation = Operation {
        verb: written.verb,
        path: Vec::new(),
        query: Vec::new(),
        headers: Vec::new(),
        cookies: Vec::new(),
        body: payload,
        credentials,
    };
    let mut in_path = Vec::new();
    for parameter in parameters {
        let slot = slot(&parameter, &mut arguments, &mut taken);
        match parameter.place {
            Place::Path => in_path.push(slot),
            Place::Query => operation.query.push(slot),
            Place::Header => operation.headers.push(slot),
            Place::Cookie => operation.cookies.push(slot),
        }
    }
    operation.path = path.into_iter().map(|piece| placed(piece, &in_path)).collect();
    let schema = announced(schemas, &arguments)?;
    notes.extend(schemas.take_notes());
    Ok(Made { schema, operation, notes })
}

/// A path in parts: texts, and the names of parameters.
fn pieces(path: &str) -> Result<Vec<Result<String, &str>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), path);
    if path.split(['/', '?']).any(|part| part == "." || part == "..") {
        return Err("its path has dots for a part".to_owned());
    }
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else {
            return Err("its path has a brace that is not closed".to_owned());
        };
        pieces.push(Ok(literal(before)));
        pieces.push(Err(name));
        rest = after;
    }
    pieces.push(Ok(literal(rest)));
    Ok(pieces)
}

fn literal(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode::percent_but(text, "/:@!$&'()*+,;=?%", &mut encoded);
    encoded
}

fn placed(piece: Result<String, &str>, slots: &[Slot]) -> Piece {
    match piece {
        Ok(text) => Piece::Text(text),
        Err(name) => match slots.iter().find(|slot| slot.name == name) {
            Some(slot) => Piece::Value(slot.clone()),
            None => Piece::Text(String::new()),
        },
    }
}

fn slot<'a>(
    parameter: &Parameter<'a>,
    arguments: &mut Vec<Argument<'a>>,
    taken: &mut HashSet<String>,
) -> Slot {
    let argument = names::argument(&parameter.name, taken, parameter.place.name());
    taken.insert(argument.clone());
    arguments.push(Argument {
        name: argument.clone(),
        schema: parameter.schema,
        about: parameter.about,
        required: parameter.required,
        is_file: false,
    });
    Slot {
        argument,
        name: parameter.name.clone(),
        style: parameter.style,
        explode: parameter.explode,
        reserved: parameter.reserved,
        members: parameter.members.clone(),
    }
}

/// The body, whose members are arguments.
fn payload<'a>(
    body: Body<'a>,
    arguments: &mut Vec<Argument<'a>>,
    taken: &mut HashSet<String>,
) -> Payload {
    let mut slots = Vec::new();
    let mut media_types = Vec::new();
    for Member { name, schema, required, style, explode, names: members, file } in body.members {
        let argument = names::argument(&name, taken, "body");
        taken.insert(argument.clone());
        let required = required && body.required;
        let is_file = file.is_some();
        let (schema, about) = match is_file {
            true => (given_as(schema), schema.text("description").unwrap_or_default()),
            false => (schema, ""),
        };
        arguments.push(Argument { name: argument.clone(), schema, about, required, is_file });
        media_types.push(file);
        slots.push(Slot { argument, name, style, explode, reserved: false, members });
    }
    let pairs = || slots.iter().map(|slot| (slot.argument.clone(), slot.name.clone())).collect();
    match (body.kind, body.is_whole) {
        (Kind::Json(media), true) => Payload::Whole { media, argument: slots.remove(0).argument },
        (Kind::Text(media), _) => Payload::Text { media, argument: slots.remove(0).argument },
        (Kind::Json(media), false) => {
            Payload::Members { media, members: pairs(), required: body.required }
        }
        (Kind::Form, _) => Payload::Form(slots),
        (Kind::Bytes(media), _) => Payload::Bytes { media, argument: slots.remove(0).argument },
        (Kind::Multipart, _) => {
            let field = |(slot, media): (Slot, Option<String>)| Field {
                argument: slot.argument,
                name: slot.name,
                media,
            };
            Payload::Multipart(slots.into_iter().zip(media_types).map(field).collect())
        }
    }
}

/// What is announced of bytes: they are given as text.
fn given_as(schema: Node<'_>) -> Node<'static> {
    static FILE: LazyLock<Value> =
        LazyLock::new(|| json!({ "type": "string", "contentEncoding": "base64" }));
    static FILES: LazyLock<Value> = LazyLock::new(|| json!({ "type": "array", "items": *FILE }));
    let value = if schema.get("items").is_some() { &FILES } else { &FILE };
    Node { value, file: 0 }
}

/// The schema of all arguments together.
fn announced<'a>(schemas: &mut Schemas<'a>, arguments: &[Argument<'a>]) -> Result<Raw, String> {
    let each = (MOST_ABOUT / arguments.len().max(1)).clamp(40, 400);
    let about = |it: &Argument<'_>| match (sentence(it.about, each), it.is_file) {
        (about, false) => about,
        (about, true) if about.is_empty() => "Bytes, in Base64".to_owned(),
        (about, true) => format!("{about} (bytes, in Base64)"),
    };
    let about: Vec<String> = arguments.iter().map(about).collect();
    let names = arguments.iter().map(|it| 2 * it.name.len() + 40).sum::<usize>();
    let spent = about.iter().map(String::len).sum::<usize>() + names + 80;
    let nodes: Vec<Node<'a>> = arguments.iter().map(|it| it.schema).collect();
    let made = schemas.put_together(&nodes, MOST_SCHEMA.saturating_sub(spent));
    let made =
        made.ok_or_else(|| format!("its arguments cannot be described in {MOST_SCHEMA} bytes"))?;
    let mut properties = Map::new();
    for ((argument, mut schema), about) in arguments.iter().zip(made).zip(about) {
        if let Value::Object(members) = &mut schema {
            if members.is_empty() && argument.schema.value.is_null() && argument.required {
                members.insert("type".to_owned(), "string".into());
            }
            if !about.is_empty() {
                members.insert("description".to_owned(), about.into());
            }
        }
        properties.insert(argument.name.clone(), schema);
    }
    let required = arguments.iter().filter(|it| it.required).map(|it| it.name.as_str());
    Ok(Raw::from_value(&json!({
        "type": "object",
        "properties": properties,
        "required": required.collect::<Vec<_>>(),
        "additionalProperties": false,
    })))
}
