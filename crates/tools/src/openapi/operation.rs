//! Creates a tool from one operation of a document.

use std::collections::HashSet;
use std::sync::LazyLock;

use creole::proto::wire::Raw;
use serde_json::{Map, Value, json};

use super::document_set::{DocumentSet, Node, clean_text};
use super::parameter::{Parameter, ParameterLocation, read_parameters};
use super::request::{ApiOperation, Piece, RequestPayload};
use super::schema::SchemaInliner;
use super::security::SecuritySchemes;
use crate::openapi::names;
use crate::openapi::request::body::{BodyKind, BodyMember, RequestBody, read_body};
use crate::openapi::request::upload::MultipartField;
use crate::openapi::style::ParameterSlot;
use crate::recipe::http::{RequestMethod, encode};

/// Maximum size of the schema of a tool's arguments, in bytes.
const MAX_SCHEMA_BYTES: usize = 16_384;
/// Maximum total size of the descriptions of parameters, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4_096;

/// An operation in its document.
pub(super) struct OperationSource<'a> {
    pub(super) path: &'a str,
    pub(super) verb: RequestMethod,
    pub(super) item: Node<'a>,
    pub(super) node: Node<'a>,
}

/// The parts of a tool.
pub(super) struct BuiltOperation {
    pub(super) schema: Raw,
    pub(super) operation: ApiOperation,
    pub(super) notes: Vec<String>,
}

/// The name and the announced schema of an argument.
struct OperationArgument<'a> {
    name: String,
    schema: Node<'a>,
    about: &'a str,
    required: bool,
    is_file: bool,
}

/// Creates a tool from an operation.
///
/// # Errors
/// The reason why it cannot become a tool.
pub(super) fn build_operation<'a>(
    library: &'a DocumentSet,
    schemas: &mut SchemaInliner<'a>,
    schemes: &SecuritySchemes,
    written: &OperationSource<'a>,
    has_auth: bool,
) -> Result<BuiltOperation, String> {
    let path = parse_path(written.path)?;
    let in_path: Vec<&str> =
        path.iter().filter_map(|piece| piece.as_ref().err().copied()).collect();
    let mut parameters = read_parameters(library, written.item, written.node, &in_path)?;
    parameters.retain(|it| !schemes.has(it.location.name(), &it.name));
    // A reading request has no body, even if the document describes one.
    let body = match written.verb {
        RequestMethod::Get => None,
        _ => read_body(library, written.node)?,
    };
    let mut notes = body.as_ref().map(|body| body.notes.clone()).unwrap_or_default();
    let security = written.node.get("security").or_else(|| library.document().get("security"));
    let credentials = schemes.credentials_for(security).unwrap_or_else(|missing| {
        if !has_auth {
            notes.push(format!("no secret is configured for `{}`", missing.join("` and `")));
        }
        Vec::new()
    });
    let mut arguments = Vec::new();
    let mut taken = HashSet::new();
    let payload = body.map(|body| build_payload(body, &mut arguments, &mut taken));
    let mut operation = ApiOperation {
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
        let slot = parameter_slot(&parameter, &mut arguments, &mut taken);
        match parameter.location {
            ParameterLocation::Path => in_path.push(slot),
            ParameterLocation::Query => operation.query.push(slot),
            ParameterLocation::Header => operation.headers.push(slot),
            ParameterLocation::Cookie => operation.cookies.push(slot),
        }
    }
    operation.path = path.into_iter().map(|piece| to_path_piece(piece, &in_path)).collect();
    let schema = arguments_schema(schemas, &arguments)?;
    notes.extend(schemas.take_notes());
    Ok(BuiltOperation { schema, operation, notes })
}

/// A path split into literal texts and the names of parameters.
fn parse_path(path: &str) -> Result<Vec<Result<String, &str>>, String> {
    let (mut pieces, mut rest) = (Vec::new(), path);
    if path.split(['/', '?']).any(|part| part == "." || part == "..") {
        return Err("its path has a segment `.` or `..`".to_owned());
    }
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((name, after)) = behind.split_once('}') else {
            return Err("its path has an unclosed brace".to_owned());
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
    encode::percent_encode_except(text, "/:@!$&'()*+,;=?%", &mut encoded);
    encoded
}

fn to_path_piece(piece: Result<String, &str>, slots: &[ParameterSlot]) -> Piece {
    match piece {
        Ok(text) => Piece::Text(text),
        Err(name) => match slots.iter().find(|slot| slot.name == name) {
            Some(slot) => Piece::Value(slot.clone()),
            None => Piece::Text(String::new()),
        },
    }
}

fn parameter_slot<'a>(
    parameter: &Parameter<'a>,
    arguments: &mut Vec<OperationArgument<'a>>,
    taken: &mut HashSet<String>,
) -> ParameterSlot {
    let argument = names::argument_name(&parameter.name, taken, parameter.location.name());
    taken.insert(argument.clone());
    arguments.push(OperationArgument {
        name: argument.clone(),
        schema: parameter.schema,
        about: parameter.about,
        required: parameter.required,
        is_file: false,
    });
    ParameterSlot {
        argument,
        name: parameter.name.clone(),
        style: parameter.style,
        explode: parameter.explode,
        reserved: parameter.reserved,
        members: parameter.members.clone(),
    }
}

/// The body, whose members are arguments.
fn build_payload<'a>(
    body: RequestBody<'a>,
    arguments: &mut Vec<OperationArgument<'a>>,
    taken: &mut HashSet<String>,
) -> RequestPayload {
    let mut slots = Vec::new();
    let mut media_types = Vec::new();
    for BodyMember { name, schema, required, style, explode, names: members, file } in body.members
    {
        let argument = names::argument_name(&name, taken, "body");
        taken.insert(argument.clone());
        let required = required && body.required;
        let is_file = file.is_some();
        let (schema, about) = match is_file {
            true => (text_schema(schema), schema.text("description").unwrap_or_default()),
            false => (schema, ""),
        };
        arguments.push(OperationArgument {
            name: argument.clone(),
            schema,
            about,
            required,
            is_file,
        });
        media_types.push(file);
        slots.push(ParameterSlot { argument, name, style, explode, reserved: false, members });
    }
    let pairs = || slots.iter().map(|slot| (slot.argument.clone(), slot.name.clone())).collect();
    match (body.kind, body.is_whole) {
        (BodyKind::Json(media), true) => {
            RequestPayload::Whole { media, argument: slots.remove(0).argument }
        }
        (BodyKind::Text(media), _) => {
            RequestPayload::Text { media, argument: slots.remove(0).argument }
        }
        (BodyKind::Json(media), false) => {
            RequestPayload::Members { media, members: pairs(), required: body.required }
        }
        (BodyKind::Form, _) => RequestPayload::Form(slots),
        (BodyKind::Bytes(media), _) => {
            RequestPayload::Bytes { media, argument: slots.remove(0).argument }
        }
        (BodyKind::Multipart, _) => {
            let field = |(slot, media): (ParameterSlot, Option<String>)| MultipartField {
                argument: slot.argument,
                name: slot.name,
                media,
            };
            RequestPayload::Multipart(slots.into_iter().zip(media_types).map(field).collect())
        }
    }
}

/// The announced schema of binary data, which is given as text.
fn text_schema(schema: Node<'_>) -> Node<'static> {
    static FILE: LazyLock<Value> =
        LazyLock::new(|| json!({ "type": "string", "contentEncoding": "base64" }));
    static FILES: LazyLock<Value> = LazyLock::new(|| json!({ "type": "array", "items": *FILE }));
    let value = if schema.get("items").is_some() { &FILES } else { &FILE };
    Node { value, file: 0 }
}

/// The schema of all arguments.
fn arguments_schema<'a>(
    schemas: &mut SchemaInliner<'a>,
    arguments: &[OperationArgument<'a>],
) -> Result<Raw, String> {
    let each = (MAX_DESCRIPTION_BYTES / arguments.len().max(1)).clamp(40, 400);
    let about = |it: &OperationArgument<'_>| match (clean_text(it.about, each), it.is_file) {
        (about, false) => about,
        (about, true) if about.is_empty() => "Bytes, in Base64".to_owned(),
        (about, true) => format!("{about} (bytes, in Base64)"),
    };
    let about: Vec<String> = arguments.iter().map(about).collect();
    let names = arguments.iter().map(|it| 2 * it.name.len() + 40).sum::<usize>();
    let spent = about.iter().map(String::len).sum::<usize>() + names + 80;
    let nodes: Vec<Node<'a>> = arguments.iter().map(|it| it.schema).collect();
    let made = schemas.inline_all(&nodes, MAX_SCHEMA_BYTES.saturating_sub(spent));
    let made = made.ok_or_else(|| {
        format!("the schema of its arguments is larger than {MAX_SCHEMA_BYTES} bytes")
    })?;
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
