//! The OpenAPI document, made from the table of routes and the types of the handlers.

use ::http::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::http::problem::ProblemDocument;
use crate::routes::{Answer, MakeSchema, Route};

/// The document of these routes.
pub(crate) fn document(routes: &[Route]) -> Map<String, Value> {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<ProblemDocument>();
    let mut paths = Map::new();
    for route in routes {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route, &mut generator, &problem);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Creole admin API",
            "version": "1",
            "description": "What a Creole process does, and what an operator can do with it.",
        },
        "servers": [{ "url": "/api/v1" }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } },
        },
    });
    match document {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn operation(route: &Route, generator: &mut SchemaGenerator, problem: &schemars::Schema) -> Value {
    let placeholders = route.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let schema = json!({ "type": "string" });
        Some(json!({ "name": name, "in": "path", "required": true, "schema": schema }))
    });
    let query = route.query.iter().map(|name| {
        json!({ "name": name, "in": "query", "required": false, "schema": { "type": "string" } })
    });
    let parameters: Vec<Value> = placeholders.chain(query).collect();
    let mut make = |make: &MakeSchema| make(generator);
    let (status, content) = match &route.answer {
        Answer::NoContent => (StatusCode::NO_CONTENT, json!({})),
        Answer::Json(status, schema) => {
            (*status, json!({ "application/json": { "schema": make(schema) } }))
        }
        Answer::Events(events) => {
            (StatusCode::OK, json!({ "text/event-stream": stream(events, &mut make) }))
        }
        Answer::JsonOrEvents(schema, events) => {
            let document = json!({ "schema": make(schema) });
            let stream = stream(events, &mut make);
            (StatusCode::OK, json!({ "application/json": document, "text/event-stream": stream }))
        }
    };
    let mut success = json!({ "description": status.canonical_reason().unwrap_or_default() });
    if content.as_object().is_some_and(|content| !content.is_empty()) {
        success["content"] = content;
    }
    let failure = json!({
        "description": "A problem (RFC 9457)",
        "content": { "application/problem+json": { "schema": problem } },
    });
    let mut responses = Map::new();
    responses.insert(status.as_u16().to_string(), success);
    responses.insert("default".to_owned(), failure);
    let mut operation = json!({
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
    });
    match route.role {
        Some(role) => operation["x-role"] = role.name().into(),
        None => operation["security"] = json!([]),
    }
    if let Some(body) = &route.body {
        let schema = make(body);
        let content = json!({ "application/json": { "schema": schema } });
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    operation
}

/// A stream as text, with the schemas of the data of its events.
fn stream(
    events: &[(&str, MakeSchema)],
    make: &mut impl FnMut(&MakeSchema) -> schemars::Schema,
) -> Value {
    let events: Map<String, Value> = events
        .iter()
        .map(|(name, schema)| ((*name).to_owned(), json!({ "schema": make(schema) })))
        .collect();
    json!({ "schema": { "type": "string" }, "x-events": events })
}

/// A name for programs that are made from the document: `getUpstreamsUpstream`.
fn operation_id(route: &Route) -> String {
    let mut id = route.method.as_str().to_lowercase();
    for part in route.path.split(['/', '.']).filter(|part| !part.is_empty()) {
        let part = part.trim_matches(['{', '}']);
        let mut letters = part.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id.extend(letters);
    }
    id
}
