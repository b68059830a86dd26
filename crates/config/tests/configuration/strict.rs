//! Tests that the reader rejects, with a location, everything that the schema for editors rejects. Both reject unknown
//! keys and wrong types.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::full::FULL;
use super::full_files::folder;
use super::*;

/// Invalid files; the first line of each names the error.
const WRONG: &str = include_str!("wrong.txt");

fn load(folder: &Path, text: &str) -> Result<Plan, ConfigError> {
    let path = folder.join("creole.toml");
    fs::write(&path, text).unwrap();
    Plan::load(ConfigSource::File(&path), PACKS)
}

/// A value as TOML; `None` for a value that TOML cannot express.
fn written(value: &Value) -> Option<String> {
    toml::to_string(value).ok()
}

#[test]
fn the_parser_knows_every_key() {
    let folder = folder();
    let plan = load(folder.path(), FULL).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.server.chain.len(), plan.upstreams.len()), (10, 11), "one is not enabled");
    let again = written(&as_json(FULL)).unwrap();
    load(folder.path(), &again).unwrap_or_else(|error| panic!("in another order: {error}"));
}

/// Keys that exclude others of the full file, which keeps its state in a Redis server. Tests of their own load them.
const ALTERNATIVES: [&str; 1] = ["StateTable.listen_url"];

#[test]
fn every_key_of_the_schema_is_in_the_full_file() {
    let document = schema(PACKS);
    let mut missing = BTreeSet::new();
    for (name, table) in document["$defs"].as_object().unwrap() {
        for table in table["oneOf"].as_array().into_iter().flatten().chain([table]) {
            for key in table["properties"].as_object().into_iter().flat_map(Map::keys) {
                let is_there = [format!("{key} ="), format!(".{key} ="), format!(".{key}]")];
                if !is_there.iter().any(|text| FULL.contains(text)) {
                    missing.insert(format!("{name}.{key}"));
                }
            }
        }
    }
    missing.retain(|key| !ALTERNATIVES.contains(&key.as_str()));
    assert!(missing.is_empty(), "{missing:?}");
}

/// Calls a function with the pointer of each table and of each value in it.
fn each(value: &Value, pointer: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(pointer, value);
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                each(value, &format!("{pointer}/{key}"), visit);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                each(value, &format!("{pointer}/{index}"), visit);
            }
        }
        _ => {}
    }
}

/// Asserts that the reader rejects a file if the schema rejects it. Returns whether the schema does.
#[track_caller]
fn is_refused_by_both(
    folder: &Path,
    validator: &Validator,
    changed: &Value,
    description: &str,
) -> bool {
    if validator.is_valid(changed) {
        return false;
    }
    let Some(text) = written(changed) else { return false };
    match load(folder, &text) {
        Ok(_) => panic!("the schema refuses it, and the reader takes it: {description}"),
        Err(error) => assert!(error.location.is_some(), "no place: {description}\n{error}"),
    }
    true
}

#[test]
fn an_unknown_key_is_refused_in_every_table() {
    let (folder, validator, full) = (folder(), validator(), as_json(FULL));
    // Tables with user-defined names, and with values that are passed on.
    let open = [
        "/env",
        "/env_files",
        "/headers",
        "/query",
        "/body",
        "/output_schema",
        "/arguments",
        "/values",
        "/capability_flags",
        "/defaults",
        "/fixed",
        "/names",
        "/data",
        "/tools",
        "/folders",
        "/prompts",
        "/resources",
        "/upstreams",
        "/openapi",
        "/operations",
        "/security",
        "/c",
        "/2",
    ];
    let mut refused = 0;
    each(&full, "", &mut |pointer, value| {
        let is_inside = pointer.contains("/fixed/") || pointer.contains("/defaults/");
        if !value.is_object() || is_inside || open.iter().any(|end| pointer.ends_with(end)) {
            return;
        }
        let mut changed = full.clone();
        changed.pointer_mut(pointer).unwrap()["zzz"] = json!(1);
        assert!(
            is_refused_by_both(folder.path(), &validator, &changed, pointer),
            "taken: {pointer}"
        );
        refused += 1;
    });
    assert!(refused > 60, "{refused}");
}

#[test]
fn a_value_of_another_type_is_refused() {
    let (folder, validator, full) = (folder(), validator(), as_json(FULL));
    let mut refused = 0;
    each(&full, "", &mut |pointer, value| {
        for other in [json!("x y"), json!(-7), json!({ "zzz": 1 })] {
            if pointer.is_empty() || std::mem::discriminant(&other) == std::mem::discriminant(value)
            {
                continue;
            }
            let mut changed = full.clone();
            *changed.pointer_mut(pointer).unwrap() = other.clone();
            let message = format!("{pointer} = {other}");
            refused +=
                usize::from(is_refused_by_both(folder.path(), &validator, &changed, &message));
        }
    });
    assert!(refused > 500, "{refused}");
}

#[test]
fn invalid_files_are_refused_by_both_with_their_position() {
    let (folder, validator) = (folder(), validator());
    for text in WRONG.split("=====\n").filter(|text| !text.trim().is_empty()) {
        assert!(!validator.is_valid(&as_json(text)), "the schema accepts it\n{text}");
        let error = load(folder.path(), text).expect_err(text);
        let shown = error.to_string();
        assert!(error.location.is_some() && shown.contains("creole.toml:"), "{text}\n{shown}");
        assert!(shown.contains('^'), "{shown}");
    }
}
