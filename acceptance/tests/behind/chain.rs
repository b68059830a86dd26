//! Tests of the preset `mcp-chain`: its front, and its default or configured external server (seed 001).

use std::fs;

use creole_acceptance::process_under_test::{Server, told};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{command, creole, initialized, write};

/// Starts the preset `mcp-chain` with these additional arguments.
fn chain(folder: &TempDir, words: &[&str]) -> Server {
    let words = [&["serve", "--preset", "mcp-chain"], words].concat();
    let (server, initialize_result) = initialized(command(folder.path(), &words));
    assert_eq!(initialize_result["protocolVersion"], "2025-03-26");
    assert_eq!(
        initialize_result["capabilities"],
        json!({"tools": {}, "resources": {}, "prompts": {}})
    );
    let expected = json!({"name": "mcp-chain-server", "version": "1.0.0"});
    assert_eq!(initialize_result["serverInfo"], expected);
    server
}

/// The names of the items in one list.
#[track_caller]
fn names(server: &mut Server, kind: &str, member: &str) -> Vec<String> {
    let listed = server.request(&format!("{kind}/list"), &json!({}));
    let items = listed["result"][kind].as_array().unwrap_or_else(|| panic!("{listed}"));
    items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
}

/// The code, the message and the data of an error.
fn error(response: &Value) -> (i64, &str, &str) {
    let error = &response["error"];
    let text = |member: &str| error[member].as_str().unwrap_or_default();
    (error["code"].as_i64().unwrap_or_default(), text("message"), text("data"))
}

#[test]
fn the_chain_leads_to_its_default_external_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = chain(&folder, &[]);
    let tools = names(&mut chain, "tools", "name");
    assert_eq!(tools[..4], ["hello", "echo", "calculate", "create_task"]);
    assert_eq!(names(&mut chain, "resources", "uri"), ["creole://guide"]);
    assert_eq!(names(&mut chain, "prompts", "name"), ["introduce", "plan_task"]);
    let hello = chain.call("hello", &json!({"name": "Ann"}));
    assert_eq!(told(&hello).as_deref(), Ok("Hello, Ann!"));
    assert_eq!(hello["result"]["isError"], false, "the document's example has this value");
}

#[test]
fn each_error_has_the_code_of_the_document() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = chain(&folder, &[]);
    let unknown = chain.call("unknown_tool", &json!({}));
    let expected = (-32001, "Tool not found", "Tool 'unknown_tool' does not exist");
    assert_eq!(error(&unknown), expected);
    let resource = chain.request("resources/read", &json!({"uri": "file:///none"}));
    let expected = (-32002, "Resource not found", "Resource 'file:///none' does not exist");
    assert_eq!(error(&resource), expected);
    let prompt = chain.request("prompts/get", &json!({"name": "none"}));
    assert_eq!(error(&prompt), (-32003, "Prompt not found", "Prompt 'none' does not exist"));
    let failed = chain.call("calculate", &json!({"expression": "1/0"}));
    let (code, message, _) = error(&failed);
    assert_eq!((code, message), (-32004, "Tool execution failed"), "{failed}");
    let method = chain.request("invalid/method", &json!({}));
    assert_eq!(error(&method), (-32601, "Method not found", "Unknown method: invalid/method"));
    let params = chain.request("resources/read", &json!({}));
    assert_eq!(error(&params).0, -32602, "{params}");
}

#[test]
fn the_default_external_server_keeps_its_data_where_the_chain_was_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut chain = chain(&folder, &[]);
    let created = chain.call("create_task", &json!({"description": "kept here"}));
    assert!(told(&created).is_ok(), "{created}");
    let _ = chain.finish();
    let kept: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(!kept.is_empty(), "nothing is in the folder that CREOLE_DATA_DIR names");
}

#[test]
fn another_external_server_takes_the_place_of_the_default_one() {
    let (folder, creole) = (tempfile::tempdir().unwrap(), creole());
    write(folder.path(), "other.toml", "[server]\npacks = [\"echo\", \"guide\"]\n");
    let mut chain = chain(&folder, &["--", &creole, "serve", "other.toml"]);
    assert_eq!(names(&mut chain, "tools", "name"), ["echo"]);
    let echo = chain.call("echo", &json!({"message": "through"}));
    assert_eq!(told(&echo).as_deref(), Ok("through"));
    assert_eq!(error(&chain.call("hello", &json!({"name": "Ann"}))).0, -32001);
}

/// A chain whose middleware denies some resources.
const DENYING: &str = "\
[server]
name = \"mcp-chain-server\"
version = \"1.0.0\"
dialect = \"DIALECT\"
[upstreams.external]
preset = \"default\"
prefix = \"\"
[[upstreams.external.chain]]
kind = \"filter\"
kinds = [\"resources\"]
deny = [\"creole://*\"]
";

#[test]
fn a_resource_that_the_middleware_denies_has_a_code_where_the_dialect_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let read = |dialect: &str, uri: &str| {
        write(folder.path(), "creole.toml", &DENYING.replace("DIALECT", dialect));
        let (mut server, _) = initialized(command(folder.path(), &["serve", "creole.toml"]));
        server.request("resources/read", &json!({"uri": uri}))["error"].take()
    };
    let denied = read("mcp-chain", "creole://guide");
    let expected =
        json!({"code": -32005, "message": "Resource access denied", "data": "creole://guide"});
    assert_eq!(denied, expected);
    assert_eq!(read("mcp-chain", "other://guide")["code"], -32002);
    // With another dialect, a denied resource looks like one that does not exist.
    let (hidden, never) = (read("spec", "creole://guide"), read("spec", "other://guide"));
    let named = never.to_string().replace("other://", "creole://");
    assert_eq!((hidden["code"].as_i64(), hidden.to_string()), (Some(-32002), named));
}
