//! Compares the rules for definitions with the official schemas of every revision and with the official TypeScript SDK.

use std::path::PathBuf;
use std::process::Command;

use creole::proto::model::{Definition, ListKind};
use creole::proto::revision::Revision;
use creole_acceptance::peers;
use creole_acceptance::peers::Peer;
use creole_acceptance::referee::schema;
use serde_json::{Value, json};

use crate::if_installed;
use crate::schema::ran;

/// Prints, for each list, whether the SDK accepts it.
const SCRIPT: &str = r#"
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
const require = createRequire(process.argv[1] + "/");
const types = await import(pathToFileURL(require.resolve("@modelcontextprotocol/sdk/types.js")));
const schemas = { tools: types.ListToolsResultSchema, resources: types.ListResourcesResultSchema,
    resourceTemplates: types.ListResourceTemplatesResultSchema, prompts: types.ListPromptsResultSchema };
const lists = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(lists.map(([member, item]) =>
    schemas[member].safeParse({ [member]: [item] }).success)));
"#;

/// A definition of each kind with every member, and its name in the official schemas.
fn whole() -> Vec<(ListKind, &'static str, Value)> {
    let icons = json!([{"src": "https://a/b.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}]);
    let about =
        json!({"audience": ["user"], "priority": 0.5, "lastModified": "2026-07-28T12:00:00Z"});
    let schema = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
        "properties": {"a": {"type": "string"}}, "required": ["a"]});
    let hints = json!({"title": "T", "readOnlyHint": true, "destructiveHint": false,
        "idempotentHint": true, "openWorldHint": false});
    let argument = json!({"name": "a", "title": "A", "description": "d", "required": true});
    vec![
        (
            ListKind::Tools,
            "Tool",
            json!({"name": "t", "title": "T", "description": "d",
            "inputSchema": schema, "outputSchema": schema, "annotations": hints, "icons": icons,
            "execution": {"taskSupport": "optional"}, "_meta": {"a": 1}}),
        ),
        (
            ListKind::Resources,
            "Resource",
            json!({"uri": "a://b", "name": "n", "title": "T",
            "description": "d", "mimeType": "text/plain", "size": 5, "annotations": about,
            "icons": icons, "_meta": {}}),
        ),
        (
            ListKind::Templates,
            "ResourceTemplate",
            json!({"uriTemplate": "a://{b}", "name": "n",
            "title": "T", "description": "d", "mimeType": "text/plain", "annotations": about,
            "icons": icons, "_meta": {}}),
        ),
        (
            ListKind::Prompts,
            "Prompt",
            json!({"name": "n", "title": "T", "description": "d",
            "arguments": [argument], "icons": icons, "_meta": {}}),
        ),
    ]
}

/// The definition with one value, at any depth, replaced by another or removed.
fn variants(item: &Value) -> Vec<Value> {
    let values = [
        json!(null),
        json!([]),
        json!({}),
        json!("x:y"),
        json!(5),
        json!(true),
        json!(1.5),
        json!(-1),
        json!([5]),
        json!(["x"]),
        json!({"a": 5}),
        json!({"a": true}),
        json!({"type": "array"}),
    ];
    let mut items = vec![item.clone()];
    for location in paths_of(item, "") {
        for value in &values {
            let mut changed = item.clone();
            *changed.pointer_mut(&location).unwrap() = value.clone();
            items.push(changed);
        }
        let (parent, key) = location.rsplit_once('/').unwrap();
        let mut changed = item.clone();
        if let Some(members) = changed.pointer_mut(parent).unwrap().as_object_mut() {
            members.remove(key);
            items.push(changed);
        }
    }
    items
}

fn paths_of(value: &Value, at: &str) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, item)| (key.clone(), item)).collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(key, item)| (key.to_string(), item)).collect()
        }
        _ => Vec::new(),
    };
    let inner = inner.into_iter().filter(|(key, _)| !key.starts_with('$'));
    inner
        .flat_map(|(key, value)| {
            let here = format!("{at}/{key}");
            let mut all = paths_of(value, &here);
            all.push(here);
            all
        })
        .collect()
}

#[test]
fn a_definition_that_is_listed_is_right_by_the_schema_of_every_revision() {
    let mut counts = (0, 0);
    for (kind, definition, item) in whole() {
        for variant in variants(&item) {
            let Ok(checked) = Definition::from_untrusted(kind, &variant.to_string(), 0) else {
                counts.1 += 1;
                continue;
            };
            counts.0 += 1;
            for revision in Revision::ALL {
                let text = checked.text(revision.rules());
                let shown: Value = serde_json::from_str(text).unwrap();
                if let Err(problem) = schema::validate(revision, definition, &shown) {
                    panic!("{revision:?}: {problem}\n{variant}\n{text}");
                }
            }
        }
    }
    assert!(counts.0 > 100 && counts.1 > 300, "{counts:?}");
}

#[test]
fn the_typescript_sdk_accepts_every_definition_that_is_listed() {
    let Some(installed) = if_installed("zod", peers::installed(Peer::TypeScriptV1)) else { return };
    let command = installed.command();
    let script = PathBuf::from(command.get_args().next().unwrap());
    let mut lists = Vec::new();
    for (kind, _, item) in whole() {
        for variant in variants(&item) {
            if let Ok(checked) = Definition::from_untrusted(kind, &variant.to_string(), 0) {
                let text = checked.text(Revision::V2025_11_25.rules());
                let shown: Value = serde_json::from_str(text).unwrap();
                lists.push(json!([kind.member(), shown]));
            }
        }
    }
    let mut node = Command::new(command.get_program());
    node.args(["--input-type=module", "--eval", SCRIPT]).arg(script.parent().unwrap());
    let output = ran(&mut node, &json!(lists).to_string());
    let said: Vec<bool> =
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
    assert_eq!(said.len(), lists.len());
    for (list, is_accepted) in lists.iter().zip(said) {
        assert!(is_accepted, "{list}");
    }
}
