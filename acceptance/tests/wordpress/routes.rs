//! Tests of tools from the routes of a real WordPress, with the configuration of the guide and with all routes.

use std::fs;

use creole_acceptance::http::{ListeningServer, Request};
use creole_acceptance::stage::stdio::repository;
use serde_json::{Value, json};

use crate::real::{early_auth, header_of, site};
use crate::stage::front_of;

/// A stateless request of the caller with this header.
fn send_request(server: &ListeningServer, caller: &str, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = Request::post(body.to_string())
        .with("Authorization", caller)
        .with("Mcp-Protocol-Version", "2026-07-28")
        .with("Mcp-Method", method);
    if let Some(name) = params["name"].as_str() {
        request = request.with("Mcp-Name", name);
    }
    let response = request.send(server.address()).unwrap();
    assert_eq!(response.head.status, 200, "{}", response.text());
    response.message()["result"].clone()
}

fn called(server: &ListeningServer, caller: &str, tool: &str, arguments: &Value) -> (Value, bool) {
    let params = json!({"name": tool, "arguments": arguments});
    let result = send_request(server, caller, "tools/call", &params);
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"));
    let data = serde_json::from_str(text).unwrap_or(Value::String(text.to_owned()));
    (data, result["isError"] == true)
}

fn tools(server: &ListeningServer, caller: &str) -> Vec<Value> {
    let mut tools = Vec::new();
    let mut params = json!({});
    loop {
        let page = send_request(server, caller, "tools/list", &params);
        tools.extend(page["tools"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => return tools,
        }
    }
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn the_example_of_the_guide_reads_and_writes_posts_as_the_caller() {
    let Some(site) = site(&[]) else { return };
    let example = repository().join("examples/wordpress.toml");
    let (server, _data) = front_of(&site.url(), &[example.to_str().unwrap()]);
    let (admin, ed, sam) =
        (header_of(&site, "admin"), header_of(&site, "ed"), header_of(&site, "sam"));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let refused = Request::post(list).with("Authorization", &sam).send(server.address()).unwrap();
    assert_eq!(refused.head.status, 403, "a subscriber must not write posts");
    let all = tools(&server, &ed);
    let expected =
        ["wp_create_post", "wp_delete_post", "wp_get_post", "wp_list_posts", "wp_update_post"];
    for name in expected {
        assert!(names(&all).contains(&name), "{name}: {:?}", names(&all));
    }
    assert!(!names(&all).contains(&"wp_create_page"));
    let new = json!({"title": "A title", "content": "Words", "status": "draft"});
    let (post, _) = called(&server, &ed, "wp_create_post", &new);
    let id = &post["id"];
    assert_eq!(post["title"]["raw"], "A title", "{post}");
    assert_eq!(post.get("_links"), None);
    let (changed, _) =
        called(&server, &ed, "wp_update_post", &json!({"id": id, "title": "Another"}));
    assert_eq!(changed["title"]["raw"], "Another");
    let (drafts, _) = called(&server, &admin, "wp_list_posts", &json!({"status": ["draft"]}));
    assert_eq!(drafts[0]["id"], *id);
    let (message, is_error) = called(&server, &ed, "wp_list_posts", &json!({"orderby": "moon"}));
    assert!(is_error, "{message}");
    let (message, is_error) = called(&server, &ed, "wp_get_post", &json!({"id": 99999}));
    assert!(
        is_error && message.as_str().unwrap().contains("rest_post_invalid_id, HTTP 404"),
        "{message}"
    );
    let (_, is_error) = called(&server, &ed, "wp_delete_post", &json!({"id": id, "force": true}));
    assert!(!is_error);
}

#[test]
fn every_route_of_a_site_is_a_tool_with_a_valid_schema() {
    let Some(site) = site(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let text = "[server]\npacks = [\"wordpress\"]\n[wordpress]\nurl = \"${CREOLE_WORDPRESS_URL}\"\n\
                routes = { read = [\"*/*\"], write = [\"*/*\"] }\n[http]\n";
    fs::write(&file, text).unwrap();
    let (server, _data) = front_of(&site.url(), &[file.to_str().unwrap()]);
    let all = tools(&server, &header_of(&site, "admin"));
    assert!(all.len() > 100, "{}", all.len());
    let mut names = names(&all);
    for tool in &all {
        jsonschema::meta::validate(&tool["inputSchema"])
            .unwrap_or_else(|error| panic!("{tool}: {error}"));
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len());
    for denied in
        ["setting", "plugin", "theme", "application_password", "batch", "block_renderer", "oembed"]
    {
        assert_eq!(names.iter().find(|name| name.contains(denied)), None);
    }
}

#[test]
fn a_route_of_the_platform_is_not_written_where_the_write_would_be_lost() {
    let Some(site) = site(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("creole.toml");
    let text = "[server]\npacks = [\"wordpress\"]\n[wordpress]\nurl = \"${CREOLE_WORDPRESS_URL}\"\n\
                routes = { read = [\"buddyboss/v1/activity/*\"], write = [\"buddyboss/v1/activity/*\"] }\n[http]\n";
    fs::write(&file, text).unwrap();
    let (server, _data) = front_of(&site.url(), &[file.to_str().unwrap()]);
    let admin = header_of(&site, "admin");
    let (message, is_error) = called(
        &server,
        &admin,
        "buddyboss_create_activity_comment",
        &json!({"id": 1, "content": "x"}),
    );
    assert!(is_error && message.as_str().unwrap().contains("too late"), "{message}");
    assert!(
        site.platform_requests().iter().all(|request| request["method"] != "POST"),
        "nothing was sent"
    );
    site.plugin("early-auth.php", Some(&early_auth()));
    let (server, _data) = front_of(&site.url(), &[file.to_str().unwrap()]);
    let (message, is_error) =
        called(&server, &admin, "buddyboss_create_activity", &json!({"content": "Hello"}));
    assert!(!is_error, "{message}");
    let (message, is_error) = called(
        &server,
        &admin,
        "buddyboss_create_activity_comment",
        &json!({"id": 1, "content": "x"}),
    );
    assert!(!is_error, "{message}");
}
