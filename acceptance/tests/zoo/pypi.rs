//! Tests of servers from PyPI, made with releases of the Python SDK from 1.1 to 2 and with FastMCP 2 and 4.

use creole_acceptance::zoo::{Package, Published, ZooStep};
use serde_json::json;

use ZooStep::{Call, Lists, Prompt, Read};

use crate::same;

const fn python(environment: &'static str, program: &'static str) -> Published {
    Published::new(Package::Python(environment, program))
}

#[test]
fn server_time_is_the_same() {
    let server =
        python("python-2", "mcp-server-time").with(&["--local-timezone", "UTC"]).of_both_eras();
    same(&server, &times());
}

#[test]
fn server_time_with_an_early_sdk_is_the_same() {
    same(&python("python-old", "mcp-server-time").with(&["--local-timezone", "UTC"]), &times());
}

/// Times differ each day, so only invalid arguments are tested.
fn times() -> Vec<ZooStep> {
    let time = json!({"source_timezone": "UTC", "time": "25:00", "target_timezone": "Asia/Tokyo"});
    let steps = [
        Lists,
        Call("convert_time", time),
        Call("get_current_time", json!({"timezone": "Nowhere"})),
        Call("get_current_time", json!({})),
    ];
    steps.into()
}

#[test]
fn server_git_is_the_same() {
    let server = python("python-2", "mcp-server-git").of_both_eras().in_repository();
    let steps = [
        Lists,
        Call("git_status", json!({"repo_path": "{folder}"})),
        Call("git_log", json!({"repo_path": "{folder}", "max_count": 1})),
        Call("git_show", json!({"repo_path": "{folder}", "revision": "HEAD"})),
        Call("git_status", json!({"repo_path": "{folder}/none"})),
    ];
    same(&server, &steps);
}

#[test]
fn server_fetch_is_the_same() {
    let server = python("python-2", "mcp-server-fetch").of_both_eras();
    let refused = json!({"url": "http://127.0.0.1:9/"});
    same(&server, &[Lists, Call("fetch", refused.clone()), Prompt("fetch", refused)]);
}

#[test]
fn server_calculator_is_the_same() {
    let calculate = |expression: &str| Call("calculate", json!({"expression": expression}));
    let steps = [Lists, calculate("2 * (3 + 4)"), calculate("1 / 0"), Call("calculate", json!({}))];
    same(&python("python-1", "mcp-server-calculator"), &steps);
}

#[test]
fn server_sqlite_is_the_same() {
    let query = |tool: &'static str, query: &str| Call(tool, json!({"query": query}));
    let steps = [
        Lists,
        query("create_table", "CREATE TABLE tea (name TEXT, minutes INTEGER)"),
        query("write_query", "INSERT INTO tea VALUES ('Assam', 4)"),
        query("read_query", "SELECT * FROM tea"),
        query("read_query", "DELETE FROM tea"),
        Call("describe_table", json!({"table_name": "tea"})),
        Call("append_insight", json!({"insight": "Assam takes four minutes."})),
        Read("memo://insights"),
        Read("memo://none"),
        Prompt("mcp-demo", json!({"topic": "tea"})),
    ];
    same(&python("python-1", "mcp-server-sqlite").with(&["--db-path", "{folder}/tea.db"]), &steps);
}

#[test]
fn unit_converter_with_fastmcp_is_the_same() {
    let mile = json!({"value": 1, "from_unit": "mile", "to_unit": "meter"});
    let steps = [
        Lists,
        Call("convert_length", mile.clone()),
        Call("convert_batch", json!({"requests": [mile]})),
        Call("convert_length", json!({"value": 1, "from_unit": "mile", "to_unit": "hour"})),
    ];
    same(&python("fastmcp-2", "unit-converter-mcp"), &steps);
}

#[test]
fn base64_with_the_newest_fastmcp_is_the_same() {
    let steps = [
        Lists,
        Call("encode_file_to_base64", json!({"file_path": "{folder}/second.md"})),
        Call("encode_file_to_base64", json!({"file_path": "{folder}/none"})),
        Call("encode_file_to_base64", json!({})),
    ];
    same(&python("fastmcp-4", "mcp-base64").of_both_eras(), &steps);
}
