//! The JSON Schema of the configuration, for editors.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use crate::tables::Config;

/// The JSON Schema (2020-12) of a configuration file, given the available packs.
pub fn schema(known_packs: &[&str]) -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(SchemaCleanup);
    let root = settings.into_generator().into_root_schema_for::<Config>();
    let mut document = root.to_value();
    document["title"] = json!("Creole configuration");
    document["not"] = json!({ "required": ["server", "servers"] });
    let required = |key: &&str| json!({ "required": [key] });
    document["anyOf"] = SERVED_KEYS.iter().map(required).collect();
    document["$defs"][ENVIRONMENT] = json!({
        "type": "string",
        "pattern": r"\$\{",
        "description": "`${NAME}` or `${NAME:-text}`: the value of an environment variable.",
    });
    if let Some(packs) = document.pointer_mut("/$defs/ServerTable/properties/packs") {
        packs["items"] = or_from_environment(&json!({ "type": "string", "enum": known_packs }));
    }
    document
}

/// The keys of which a configuration has at least one: its servers, or items for a server with the default settings.
const SERVED_KEYS: [&str; 9] = [
    "server",
    "servers",
    "upstreams",
    "tools",
    "folders",
    "prompts",
    "resources",
    "databases",
    "openapi",
];

/// The name of the definition of a value that contains an environment variable.
const ENVIRONMENT: &str = "FromEnvironment";

/// Removes `null`, which TOML does not have, joins the lines of descriptions, and allows an environment variable for
/// every enumerated value.
#[derive(Clone)]
struct SchemaCleanup;

impl Transform for SchemaCleanup {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else { return };
        remove_null(object);
        if let Some(Value::String(text)) = object.get_mut("description") {
            *text = text.replace('\n', " ");
        }
        if is_choice_of_words(object) {
            let described = object.remove("description");
            let words = Value::Object(std::mem::take(object));
            if let Value::Object(either) = or_from_environment(&words) {
                *object = either;
            }
            if let Some(text) = described {
                object.insert("description".to_owned(), text);
            }
        }
    }
}

fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(choices)) = schema.get_mut("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    if let [Value::Object(only)] = choices.as_mut_slice() {
        let only = std::mem::take(only);
        schema.remove("anyOf");
        for (key, value) in only {
            schema.entry(key).or_insert(value);
        }
    }
}

fn is_choice_of_words(schema: &Map<String, Value>) -> bool {
    let constants = |choices: &Vec<Value>| choices.iter().all(|choice| choice["const"].is_string());
    match (schema.get("enum"), schema.get("oneOf")) {
        (Some(Value::Array(words)), _) => words.iter().all(Value::is_string),
        (_, Some(Value::Array(choices))) => constants(choices),
        _ => false,
    }
}

fn or_from_environment(words: &Value) -> Value {
    json!({ "anyOf": [words, { "$ref": format!("#/$defs/{ENVIRONMENT}") }] })
}
