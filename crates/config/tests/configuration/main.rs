//! Tests of whole configuration files: the presets, the schema for editors, and unreadable files.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod full;
mod full_files;
mod issuers;
mod strict;

use std::env::VarError;
use std::fs;
use std::path::Path;

use creole_config::describe::reference::reference;
use creole_config::describe::schema::schema;
use creole_config::{ConfigError, ConfigSource, Plan, presets};
use jsonschema::Validator;
use serde_json::Value;

use full::FULL;

const PACKS: &[&str] = &[
    "hello",
    "echo",
    "calculate",
    "tasks",
    "guide",
    "skills",
    "everything",
    "buddyboss-platform",
    "wordpress",
];

/// Loads a configuration with the variables that presets and examples use.
fn load(source: ConfigSource<'_>) -> Result<Plan, ConfigError> {
    Plan::load_with_environment(source, PACKS, &|name| match name {
        "CREOLE_WORDPRESS_URL" => Ok("https://site.example".to_owned()),
        _ => Err(VarError::NotPresent),
    })
}

fn validator() -> Validator {
    jsonschema::options().build(&schema(PACKS)).expect("the schema is a schema")
}

fn as_json(text: &str) -> Value {
    toml::from_str(text).expect("the text is TOML")
}

fn refusal(path: &Path) -> ConfigError {
    Plan::load(ConfigSource::File(path), PACKS).expect_err("the file is refused")
}

#[test]
fn every_preset_loads() {
    for preset in presets::ALL {
        let plan = load(ConfigSource::Preset(preset.name))
            .unwrap_or_else(|error| panic!("{}\n{error}", preset.name));
        let has_something = !plan.server.packs.is_empty() || !plan.upstreams.is_empty();
        assert!(has_something, "{}", preset.name);
    }
}

#[test]
fn the_default_is_the_preset_of_that_name() {
    let named = Plan::load(ConfigSource::Preset(presets::DEFAULT), PACKS).unwrap();
    assert_eq!(Plan::load(ConfigSource::Default, PACKS).unwrap(), named);
    assert_eq!(named.server.packs, ["hello", "echo", "calculate", "tasks", "guide"]);
}

#[test]
fn a_file_means_the_same_as_the_preset_that_it_is_copied_from() {
    let folder = tempfile::tempdir().unwrap();
    for preset in presets::ALL {
        let path = folder.path().join("creole.toml");
        fs::write(&path, preset.text).unwrap();
        let copied = load(ConfigSource::File(&path)).unwrap();
        assert_eq!(copied, load(ConfigSource::Preset(preset.name)).unwrap());
    }
}

#[test]
fn every_file_in_the_folder_of_presets_ships_inside() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("presets");
    let mut files: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut shipped: Vec<String> =
        presets::ALL.iter().map(|preset| format!("{}.toml", preset.name)).collect();
    files.sort();
    shipped.sort();
    assert_eq!(files, shipped);
}

#[test]
fn every_preset_is_valid_against_the_schema() {
    let validator = validator();
    for preset in presets::ALL {
        let errors: Vec<String> =
            validator.iter_errors(&as_json(preset.text)).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", preset.name);
    }
}

#[test]
fn the_schema_and_the_program_require_the_same_tables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    let cases = [
        ("[server]\npacks = [\"echo\"]\n", true),
        ("[[servers]]\nname = \"a\"\npacks = [\"echo\"]\n", true),
        ("[upstreams.wiki]\nurl = \"https://wiki.example.com/mcp\"\n", true),
        ("", false),
        ("[log]\nlevel = \"warn\"\n", false),
        ("[server]\n[[servers]]\n", false),
    ];
    for (text, is_right) in cases {
        fs::write(&path, text).unwrap();
        let loaded = load(ConfigSource::File(&path));
        assert_eq!(loaded.is_ok(), is_right, "{text}{loaded:?}");
        assert_eq!(validator().is_valid(&as_json(text)), is_right, "{text}");
    }
}

#[test]
fn the_schema_knows_every_key() {
    let full = FULL;
    let errors: Vec<String> =
        validator().iter_errors(&as_json(full)).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn the_example_of_the_document_is_right() {
    let text = include_str!("../../../../docs/chain.md");
    let (_, rest) = text.split_once("```toml\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    fs::write(&path, example).unwrap();
    let plan =
        Plan::load(ConfigSource::File(&path), PACKS).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((plan.server.chain.len(), plan.upstreams.len()), (3, 2));
    assert!(validator().is_valid(&as_json(example)));
}

#[test]
fn every_example_is_valid_against_the_schema_and_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).unwrap();
            assert!(validator().is_valid(&as_json(&text)), "{}", path.display());
            let plan = load(ConfigSource::File(&path));
            plan.unwrap_or_else(|error| panic!("{error}"));
            found += 1;
        }
    }
    assert!(found >= 5, "{found}");
}

#[test]
fn every_key_of_the_schema_is_described() {
    let document = schema(PACKS);
    let mut tables: Vec<&Value> = document["$defs"].as_object().unwrap().values().collect();
    tables.push(&document);
    for table in tables {
        let Some(properties) = table["properties"].as_object() else { continue };
        for (key, property) in properties {
            assert!(property["description"].is_string(), "{key}: {property}");
        }
    }
    let text = document.to_string();
    assert!(
        !text.contains(r#""type":"null""#) && !text.contains(r#","null"]"#),
        "TOML has no null"
    );
}

#[test]
fn the_reference_is_current() {
    let text = include_str!("../../../../docs/configuration.md");
    let (_, text) = text.split_once("\n\n").unwrap();
    assert!(
        text == reference(&creole_config::packs()),
        "the document is outdated: run cargo xtask docs"
    );
}

#[test]
fn files_of_users_and_keys_are_looked_for_beside_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("creole.toml");
    let text = "[server]\n[auth]\nusers = \"users.txt\"\nkeys_file = \"/etc/creole/keys.txt\"\n";
    fs::write(&path, text).unwrap();
    let auth = Plan::load(ConfigSource::File(&path), PACKS).unwrap().auth.unwrap();
    assert_eq!(auth.users, Some(folder.path().join("users.txt")));
    assert_eq!(auth.keys_file.as_deref(), Some(Path::new("/etc/creole/keys.txt")));
}

#[test]
fn an_unreadable_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("latin1.toml"), b"[server]\nname = \"caf\xe9\"\n").unwrap();
    fs::write(path("huge.toml"), vec![b'\n'; 1_048_577]).unwrap();
    assert!(refusal(&path("none.toml")).message.ends_with("does not exist"));
    assert!(refusal(folder.path()).message.ends_with("is a directory, not a configuration file"));
    assert!(refusal(&path("latin1.toml")).message.ends_with("is not UTF-8 text (line 2)"));
    assert!(refusal(&path("huge.toml")).message.ends_with("is larger than 1048576 bytes"));
    assert_eq!(refusal(Path::new("")).message, "the name of the configuration file is empty");
}

#[test]
fn an_unknown_preset_is_refused_with_those_that_there_are() {
    let error = Plan::load(ConfigSource::Preset("bosman"), PACKS).unwrap_err();
    let expected = "error: unknown preset `bosman`\n  = help: did you mean `bossman`? the known presets \
                    are `default`, `bb-mcp-server`, `mcp-chain`, `bossman`, `fpf-governance`, \
                    `buddyboss`, `everything`";
    assert_eq!(error.to_string(), expected);
}
