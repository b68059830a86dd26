//! The modules of the console without a page: their types, and their functions.

use std::path::Path;

use creole_acceptance::peers::browser::{check_types, run_module};
use creole_acceptance::peers::if_installed;
use serde_json::json;

use crate::{console_files, files_with};

#[test]
fn the_types_of_the_console_are_correct() {
    let files = files_with(&console_files(), "js");
    assert!(files.len() > 20, "{files:?}");
    let Some(report) = if_installed("TypeScript", check_types(&files)) else { return };
    assert_eq!(report, "");
}

#[test]
fn json_schemas_hidden_characters_and_differences_are_read_without_loss() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/browser/modules.mjs");
    let folder = console_files().display().to_string();
    let Some(failed) = if_installed("Node.js", run_module(&script, &[&folder])) else { return };
    assert_eq!(failed, json!([]));
}
