//! Tests of servers from npm, made with releases of the TypeScript SDK from 0.5 to 2 and with FastMCP.

use creole_acceptance::zoo::{Package, Published, ZooStep};
use serde_json::json;

use ZooStep::{Call, Hear, Lists, Prompt, Read, Subscribe};

use crate::same;

const fn npm(script: &'static str) -> Published {
    Published::new(Package::Npm(script))
}

#[test]
fn server_memory_is_the_same() {
    let server = npm("@modelcontextprotocol/server-memory/dist/index.js")
        .in_environment(&[("MEMORY_FILE_PATH", "{folder}/memory.jsonl")]);
    let entity = json!({"name": "Creole", "entityType": "language", "observations": ["mixes"]});
    let steps = [
        Lists,
        Subscribe("memory://knowledge-graph"),
        Call("create_entities", json!({"entities": [entity]})),
        Hear("notifications/resources/updated"),
        Call("read_graph", json!({})),
        Call("search_nodes", json!({"query": "mixes"})),
        Read("memory://knowledge-graph"),
    ];
    same(&server, &steps);
}

#[test]
fn server_sequential_thinking_is_the_same() {
    let server = npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js");
    let thought = |number: u32| {
        let goes_on = number < 2;
        json!({
            "thought": "a thought", "nextThoughtNeeded": goes_on,
            "thoughtNumber": number, "totalThoughts": 2,
        })
    };
    // The server counts the thoughts of its process.
    let calls = [1, 2].map(|number| Call("sequentialthinking", thought(number)));
    same(&server, &[&[Lists][..], &calls].concat());
}

#[test]
fn playwright_is_the_same() {
    // The server requests the roots in its first call. No browser is installed, so it then returns an error.
    let server = npm("@playwright/mcp/cli.js").with(&["--output-dir", "{folder}/output"]);
    let calls = [Call("browser_close", json!({})), Call("browser_tabs", json!({"action": "list"}))];
    same(&server, &[&[Lists][..], &calls].concat());
}

#[test]
fn hubspot_declares_resources_that_it_cannot_list_and_is_the_same() {
    let server = npm("@hubspot/mcp-server/dist/index.js")
        .in_environment(&[("PRIVATE_APP_ACCESS_TOKEN", "none")]);
    let page = json!({"pagetype": "record", "objectTypeId": "0-1", "objectId": "5"});
    let link = json!({"portalId": "1", "uiDomain": "example.com", "pageRequests": [page]});
    same(&server, &[Lists, Call("hubspot-get-link", link)]);
}

#[test]
fn nx_declares_resources_that_it_cannot_list_and_is_the_same() {
    same(&npm("nx-mcp/main.js").with(&["{folder}", "--disableTelemetry"]), &[Lists]);
}

#[test]
fn terraform_answers_lists_with_errors_and_is_the_same() {
    let code = json!({"sourceCloud": "AWS", "targetCloud": "GCP", "terraformCode": "x"});
    let steps = [Lists, Call("moduleDetails", json!({})), Prompt("migrate-clouds", code)];
    same(&npm("terraform-mcp-server/dist/index.js"), &steps);
}

#[test]
fn linear_cannot_reach_its_service_and_is_the_same() {
    let server =
        npm("linear-mcp-server/build/index.js").in_environment(&[("LINEAR_API_KEY", "none")]);
    let steps = [
        Lists,
        Call("linear_get_user_issues", json!({})),
        Prompt("linear-server-prompt", json!({})),
    ];
    same(&server, &steps);
}

#[test]
fn server_postgres_without_its_database_is_the_same() {
    let server = npm("@modelcontextprotocol/server-postgres/dist/index.js")
        .with(&["postgres://user@127.0.0.1:9/none"]);
    same(&server, &[Lists, Call("query", json!({"sql": "select 1"}))]);
}

#[test]
fn obsidian_with_the_first_sdk_is_the_same() {
    let server = npm("mcp-obsidian/dist/index.js").with(&["{folder}"]);
    let steps = [
        Lists,
        Call("read_notes", json!({"paths": ["second.md"]})),
        Call("search_notes", json!({"query": "third"})),
    ];
    same(&server, &steps);
}

#[test]
fn server_commands_is_the_same() {
    let command = json!({"command": "echo hello"});
    let steps = [Lists, Call("run_command", command.clone()), Prompt("run_command", command)];
    same(&npm("mcp-server-commands/build/index.js"), &steps);
}

#[test]
fn firecrawl_with_fastmcp_is_the_same() {
    let server = npm("firecrawl-mcp/dist/index.js").in_environment(&[
        ("FIRECRAWL_API_KEY", "none"),
        ("FIRECRAWL_API_URL", "http://127.0.0.1:9"),
    ]);
    same(&server, &[Lists, Call("firecrawl_map", json!({}))]);
}

#[test]
fn context7_with_the_second_sdk_is_the_same() {
    let server = npm("@upstash/context7-mcp/dist/index.js").of_both_eras();
    same(&server, &[Lists, Call("query-docs", json!({}))]);
}

#[test]
fn an_app_server_with_the_second_sdk_is_the_same() {
    let server =
        npm("@modelcontextprotocol/server-basic-vanillajs/dist/index.js").with(&["--stdio"]);
    same(&server, &[Lists, Read("ui://get-time/mcp-app.html")]);
}

#[test]
fn hello_world_is_the_same() {
    let steps = [
        Lists,
        Call("echo", json!({"message": "hello"})),
        Call("add", json!({"a": 1, "b": "two"})),
        Read("hello://world"),
        Read("greeting://Ada"),
        Prompt("helpful-assistant", json!({})),
    ];
    same(&npm("mcp-hello-world/build/stdio.js"), &steps);
}

#[test]
fn git_mcp_server_remembers_its_folder_and_is_the_same() {
    let server = npm("@cyanheads/git-mcp-server/dist/index.js").in_repository();
    let steps = [
        Lists,
        Call("git_status", json!({})),
        Call("git_set_working_dir", json!({"path": "{folder}"})),
        Call("git_log", json!({"maxCount": 1})),
        Read("git://working-directory"),
    ];
    same(&server, &steps);
}
