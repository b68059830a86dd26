//! The parameters of an operation in its document.

use serde_json::Value;

use super::document_set::{DocumentSet, Node};
use crate::openapi::style::Style;

/// The location of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
}

impl ParameterLocation {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "path" => Some(Self::Path),
            "query" => Some(Self::Query),
            "header" => Some(Self::Header),
            "cookie" => Some(Self::Cookie),
            _ => None,
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    fn default_style(self) -> Style {
        match self {
            Self::Path | Self::Header => Style::Simple,
            Self::Query | Self::Cookie => Style::Form,
        }
    }
}

/// One parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter<'a> {
    pub(super) name: String,
    pub(super) location: ParameterLocation,
    pub(super) required: bool,
    pub(super) about: &'a str,
    pub(super) schema: Node<'a>,
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) reserved: bool,
    /// The names of its members, if it is an object.
    pub(super) members: Vec<String>,
}

/// Maximum number of parameters of an operation.
const MAX_PARAMETERS: usize = 1_000;
/// A schema without keywords.
static EMPTY_SCHEMA: Value = Value::Null;
/// Headers that callers must not set. The specification excludes the first three as well.
const RESERVED_HEADERS: [&str; 14] = [
    "accept",
    "authorization",
    "content-type",
    "cookie",
    "host",
    "connection",
    "expect",
    "forwarded",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The parameters of an operation: its own, and those of its path that it does not override.
pub(super) fn read_parameters<'a>(
    library: &'a DocumentSet,
    item: Node<'a>,
    operation: Node<'a>,
    in_path: &[&'a str],
) -> Result<Vec<Parameter<'a>>, String> {
    let mut found: Vec<Parameter<'a>> = Vec::new();
    for node in [item, operation] {
        for written in node.get("parameters").into_iter().flat_map(Node::items) {
            let Some(parameter) = read_parameter(library, written)? else { continue };
            let same =
                |it: &Parameter<'_>| it.name == parameter.name && it.location == parameter.location;
            found.retain(|it| !same(it));
            found.push(parameter);
            if found.len() > MAX_PARAMETERS {
                return Err(format!("it has more than {MAX_PARAMETERS} parameters"));
            }
        }
    }
    found
        .retain(|it| it.location != ParameterLocation::Path || in_path.contains(&it.name.as_str()));
    for name in in_path {
        let is_known =
            |it: &Parameter<'_>| it.location == ParameterLocation::Path && it.name == *name;
        if !found.iter().any(is_known) {
            found.push(undescribed_path_parameter(name));
        }
    }
    Ok(found)
}

/// A path parameter that the document does not describe.
fn undescribed_path_parameter<'a>(name: &str) -> Parameter<'a> {
    Parameter {
        name: name.to_owned(),
        location: ParameterLocation::Path,
        required: true,
        about: "",
        schema: Node { value: &EMPTY_SCHEMA, file: 0 },
        style: Style::Simple,
        explode: false,
        reserved: false,
        members: Vec::new(),
    }
}

fn read_parameter<'a>(
    library: &'a DocumentSet,
    written: Node<'a>,
) -> Result<Option<Parameter<'a>>, String> {
    let node = library
        .resolve(written)
        .map_err(|reason| format!("a parameter has a reference to {reason}"))?;
    let required = node.is_true("required");
    let (Some(name), Some(text)) = (node.text("name"), node.text("in")) else {
        return Err("a parameter has no `name` or no `in`".to_owned());
    };
    let Some(location) = ParameterLocation::from_name(text) else {
        return match required {
            true => Err(format!("the parameter `{name}` has the unsupported location `{text}`")),
            false => Ok(None),
        };
    };
    let lower = name.to_ascii_lowercase();
    let is_own = RESERVED_HEADERS.contains(&lower.as_str()) || lower.starts_with("content-");
    if location == ParameterLocation::Header && is_own {
        return Ok(None);
    }
    let (schema, content) = match node.get("schema") {
        Some(schema) => (Some(schema), None),
        None => match node.get("content").and_then(|content| content.members().next()) {
            Some((media, content)) => (content.get("schema"), Some(media)),
            None => (None, None),
        },
    };
    let style = match content {
        Some(media) if media.contains("json") => Style::Json,
        _ => node.text("style").and_then(style_from_name).unwrap_or(location.default_style()),
    };
    let explode = node.get("explode").and_then(|it| it.value.as_bool());
    let schema = schema.unwrap_or(Node { value: &EMPTY_SCHEMA, file: 0 });
    let parameter = Parameter {
        name: name.to_owned(),
        location,
        required: required || location == ParameterLocation::Path,
        about: node.text("description").unwrap_or_default(),
        schema,
        style,
        explode: explode.unwrap_or(style == Style::Form),
        reserved: node.is_true("allowReserved"),
        members: member_names(library, schema),
    };
    Ok(Some(parameter))
}

/// The names of the members in a schema.
pub(super) fn member_names(library: &DocumentSet, schema: Node<'_>) -> Vec<String> {
    let resolved = library.resolve(schema).ok().and_then(|schema| schema.get("properties"));
    resolved.into_iter().flat_map(Node::members).map(|(name, _)| name.to_owned()).collect()
}

/// The style with this name.
pub(super) fn style_from_name(name: &str) -> Option<Style> {
    match name {
        "simple" => Some(Style::Simple),
        "label" => Some(Style::Label),
        "matrix" => Some(Style::Matrix),
        "form" => Some(Style::Form),
        "spaceDelimited" => Some(Style::SpaceDelimited),
        "pipeDelimited" => Some(Style::PipeDelimited),
        "deepObject" => Some(Style::DeepObject),
        _ => None,
    }
}
