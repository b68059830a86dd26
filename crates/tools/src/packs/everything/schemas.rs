//! Tools that test schemas, which must reach the client unchanged.

use creole::Tool;
use serde::Deserialize;
use serde_json::Value;

use crate::packs::tool;

/// All features of JSON Schema 2020-12 that the suite checks.
const FULL: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false
}"##;

/// An argument that is mirrored in the header `Mcp-Param-Value` (2026-07-28, Streamable HTTP).
const HEADER: &str = r#"{
    "type": "object",
    "properties": {
        "value": {"type": "string", "description": "Anything", "x-mcp-header": "Value"}
    },
    "required": ["value"],
    "additionalProperties": false
}"#;

const GREET: &str = r#"{
    "type": "object",
    "properties": {"name": {"type": "string", "description": "Name to greet"}},
    "required": ["name"],
    "additionalProperties": false
}"#;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool("json_schema_2020_12_tool", "Has a schema of many features", FULL, show_arguments)
            .read_only(),
        tool("test_custom_header", "Has an argument that is also a header", HEADER, header)
            .read_only(),
        tool("greet", "Greets whoever is named", GREET, greet).read_only(),
    ]
}

async fn show_arguments(value: Value) -> String {
    format!("JSON Schema 2020-12 tool called with: {value}")
}

#[derive(Deserialize)]
struct HeaderInput {
    value: String,
}

async fn header(input: HeaderInput) -> String {
    format!("Header value: {}", input.value)
}

#[derive(Deserialize)]
struct GreetInput {
    name: String,
}

async fn greet(whom: GreetInput) -> String {
    format!("Hello, {}!", whom.name)
}
