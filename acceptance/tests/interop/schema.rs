//! Checks the JSON Schema of configurations with Ajv, a third-party validator that editors use. The TypeScript SDK
//! includes it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use creole_acceptance::peers;
use creole_acceptance::peers::Peer;
use creole_acceptance::process_under_test::check;
use creole_acceptance::stage::stdio::{binary, repository};
use serde_json::{Value, json};

use crate::if_installed;

/// Prints, for each document, whether it is valid. Ajv is strict: it rejects a schema with an unknown keyword.
const SCRIPT: &str = r#"
import { createRequire } from "node:module";
const require = createRequire(process.argv[1] + "/");
const Ajv = require("ajv/dist/2020").default;
const { schema, documents } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const ajv = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allowUnionTypes: true,
    formats: { double: true } });
const validate = ajv.compile(schema);
console.log(JSON.stringify(documents.map((document) => validate(document))));
"#;

#[test]
fn a_validator_of_others_agrees_about_configurations() {
    let Some(installed) = if_installed("ajv", peers::installed(Peer::TypeScriptV1)) else { return };
    let command = installed.command();
    let script = PathBuf::from(command.get_args().next().unwrap());
    let folder = script.parent().unwrap();
    let (right, invalid) = (right(), violations());
    assert!(right.len() > 12 && invalid.len() > 40, "{} {}", right.len(), invalid.len());
    let documents: Vec<Value> =
        right.iter().chain(&invalid).map(|text| toml::from_str(text).unwrap()).collect();
    let printed = ran(Command::new(binary().unwrap()).args(["config", "schema"]), "");
    let schema: Value = serde_json::from_str(&printed).unwrap();
    let mut node = Command::new(command.get_program());
    node.args(["--input-type=module", "--eval", SCRIPT]).arg(folder);
    let output = ran(&mut node, &json!({ "schema": schema, "documents": documents }).to_string());
    let said: Vec<bool> =
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"));
    for (text, is_valid) in right.iter().chain(&invalid).zip(&said) {
        assert_eq!(*is_valid, right.contains(text), "\n{text}");
    }
    let beside = tempfile::tempdir().unwrap();
    for text in &invalid {
        refuses(beside.path(), text);
    }
}

/// The presets, the examples, and the configurations in the documentation.
fn right() -> Vec<String> {
    let in_folder = |folder: &str, ending: &str| -> Vec<String> {
        let found = fs::read_dir(repository().join(folder)).unwrap();
        let paths = found.map(|entry| entry.unwrap().path());
        let fitting = paths.filter(|path| path.to_str().is_some_and(|name| name.ends_with(ending)));
        fitting.map(|path| fs::read_to_string(path).unwrap()).collect()
    };
    let mut right = in_folder("crates/config/presets", ".toml");
    right.extend(in_folder("examples", ".toml"));
    for document in ["docs", "docs/guides"].iter().flat_map(|folder| in_folder(folder, ".md")) {
        let blocks =
            document.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        right.extend(blocks.filter(|text| !text.contains("[dependencies]")).map(str::to_owned));
    }
    right
}

/// Files that the reader rejects for an error that an editor can detect.
fn violations() -> Vec<String> {
    let all = fs::read_to_string(repository().join("crates/config/tests/configuration/wrong.txt"));
    all.unwrap().split("=====\n").map(str::to_owned).collect()
}

/// Asserts that the binary rejects a file and reports the location.
fn refuses(folder: &Path, text: &str) {
    fs::write(folder.join("creole.toml"), text).unwrap();
    fs::write(folder.join("api.yaml"), "openapi: 3.0.3\n").unwrap();
    let (code, _, output) = check(folder);
    assert_eq!(code, Some(2), "{text}\n{output}");
    assert!(output.contains("--> creole.toml:") && output.contains('^'), "{text}\n{output}");
}

/// The stdout of a program with this input.
pub(crate) fn ran(command: &mut Command, input: &str) -> String {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
