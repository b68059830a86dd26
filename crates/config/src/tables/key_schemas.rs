//! The JSON Schemas of keys whose values are names that the protocol defines.

use creole_proto::dialect::BUILTIN_NAMES;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::syntax::suggestions;

pub(crate) fn dialect_name(_generator: &mut SchemaGenerator) -> Schema {
    one_of(BUILTIN_NAMES)
}

pub(crate) fn base_revision(_generator: &mut SchemaGenerator) -> Schema {
    one_of(&suggestions::base_revisions())
}

pub(crate) fn revision(_generator: &mut SchemaGenerator) -> Schema {
    one_of(&suggestions::revisions())
}

pub(crate) fn methods(_generator: &mut SchemaGenerator) -> Schema {
    list_of(&suggestions::methods())
}

pub(crate) fn capabilities(_generator: &mut SchemaGenerator) -> Schema {
    list_of(&suggestions::CAPABILITIES)
}

fn one_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

fn list_of(words: &[&str]) -> Schema {
    json_schema!({ "type": "array", "items": one_of(words) })
}
