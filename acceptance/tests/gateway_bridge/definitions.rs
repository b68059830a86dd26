//! Tests of invalid definitions: they are excluded and logged, and other upstreams' lists are not affected.

use std::fs;

use creole_acceptance::gateway::{
    HandshakeClient, ScriptedChildren, ScriptedReplies, StatelessClient,
};
use creole_acceptance::http::ListeningServer;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Tools for which the official TypeScript client rejects the whole list, and the reason why each is excluded.
fn bad_tools() -> Vec<(Value, &'static str)> {
    let tool = |name: &str, schema: Value| json!({"name": name, "inputSchema": schema});
    let with = |name: &str, member: &str, value: Value| {
        let mut tool = tool(name, json!({"type": "object"}));
        tool[member] = value;
        tool
    };
    let missing = "`inputSchema` is missing";
    let no_object = "`inputSchema` must be an object";
    vec![
        (tool("null", json!(null)), missing),
        (json!({"name": "missing"}), missing),
        (tool("list", json!([])), no_object),
        (tool("text", json!("x")), no_object),
        (tool("number", json!(5)), no_object),
        (tool("array", json!({"type": "array"})), "`inputSchema.type` must be"),
        (with("description", "description", json!(5)), "`description` must be a string"),
        (with("annotations", "annotations", json!("yes")), "`annotations` must be an object"),
        (with("bidi\u{202e}x", "title", json!("t")), "control character U+202E"),
        (with("new\nline", "title", json!("t")), "control character U+000A"),
        (with(&"n".repeat(129), "title", json!("t")), "has 129 characters; the limit is 128"),
        (
            with("deep", "_meta", nested(200)),
            "nested too deep: a list with it has more than 128 levels",
        ),
    ]
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }))
}

/// A server with all lists.
fn server(tools: Value, resources: Value, templates: Value, prompts: Value) -> ScriptedReplies {
    let has = json!({"tools": {}, "prompts": {}, "resources": {}});
    ScriptedReplies::new("2025-11-25", has, &[])
        .answering("tools/list", json!({"tools": tools}))
        .answering("resources/list", json!({"resources": resources}))
        .answering("resources/templates/list", json!({"resourceTemplates": templates}))
        .answering("prompts/list", json!({"prompts": prompts}))
}

/// A gateway in front of a valid and an invalid server.
struct Mixed {
    gateway: ListeningServer,
    _puppets: [ScriptedChildren; 2],
    _folder: TempDir,
}

impl Mixed {
    fn new(bad: ScriptedReplies) -> Self {
        let good = server(
            json!([{"name": "ask", "inputSchema": {"type": "object"}}]),
            json!([{"uri": "good://one", "name": "one"}]),
            json!([{"uriTemplate": "good://{id}", "name": "by-id"}]),
            json!([{"name": "greet"}]),
        );
        let children = [ScriptedChildren::new(good), ScriptedChildren::new(bad)];
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        let table = |name: &str, children: &ScriptedChildren| {
            format!("[upstreams.{name}]\nprefix = \"\"\ncommand = {}\n", json!(children.command()))
        };
        let tables = table("good", &children[0]) + &table("bad", &children[1]);
        fs::write(&file, format!("[server]\nname = \"gateway\"\n\n{tables}")).unwrap();
        let gateway = ListeningServer::start(&[&file.display().to_string()]).unwrap();
        Self { gateway, _puppets: children, _folder: folder }
    }

    /// The items of a list that clients of both eras see, by this member.
    #[track_caller]
    fn listed(&self, method: &str, list: &str, member: &str) -> Vec<String> {
        let names = |response: &Value| -> Vec<String> {
            let items = response["result"][list].as_array().unwrap_or_else(|| panic!("{response}"));
            items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
        };
        let modern = StatelessClient::new(self.gateway.address()).request(method, json!({}));
        let legacy = HandshakeClient::open(self.gateway.address(), "2025-06-18", json!({}), None);
        let seen = names(&modern);
        assert_eq!(seen, names(&legacy.request(method, &json!({}))));
        seen
    }
}

#[test]
fn a_bad_tool_is_left_out_and_named_and_every_other_tool_is_listed() {
    let bad = bad_tools();
    let mut tools: Vec<Value> = bad.iter().map(|(tool, _)| tool.clone()).collect();
    tools.insert(3, json!({"name": "fine", "inputSchema": {"type": "object"}}));
    let mixed = Mixed::new(server(json!(tools), json!([]), json!([]), json!([])));
    assert_eq!(mixed.listed("tools/list", "tools", "name"), ["ask", "fine"]);
    for (tool, reason) in &bad {
        mixed.gateway.until_said(reason);
        let name = tool["name"].as_str().unwrap();
        if name.chars().all(|character| character.is_ascii_alphabetic()) && name.len() < 64 {
            mixed.gateway.until_said(&format!("item=\"{name}\""));
        }
    }
    let client = StatelessClient::new(mixed.gateway.address());
    let refused = client.request("tools/call", json!({"name": "annotations", "arguments": {}}));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn a_bad_resource_template_or_prompt_is_left_out_and_the_others_are_listed() {
    let resources = json!([
        {"uri": "bad://one"},
        {"uri": "bad://two", "name": "two", "size": "large"},
        {"uri": "bad://three", "name": "three", "description": null},
    ]);
    let templates = json!([
        {"name": "no-template"},
        {"uriTemplate": "bad://{x}", "name": "x", "annotations": {"audience": "user"}},
        {"uriTemplate": "bad://y/{x}", "name": "y"},
    ]);
    let prompts = json!([
        {"name": "args", "arguments": {"a": 1}},
        {"name": "hidden\u{2066}"},
        {"name": "fine", "arguments": [{"name": "a", "required": null}]},
    ]);
    let mixed = Mixed::new(server(json!([]), resources, templates, prompts));
    let resources = mixed.listed("resources/list", "resources", "uri");
    assert_eq!(resources, ["good://one", "bad://three"]);
    let templates = mixed.listed("resources/templates/list", "resourceTemplates", "name");
    assert_eq!(templates, ["by-id", "y"]);
    assert_eq!(mixed.listed("prompts/list", "prompts", "name"), ["greet", "fine"]);
    for reason in ["`size` must be", "`uriTemplate` is missing", "`arguments` must be", "U+2066"] {
        mixed.gateway.until_said(reason);
    }
}

/// A server's result of `initialize`.
fn introduction() -> Value {
    json!({
        "name": "shop", "version": "2", "title": "Shop", "description": "Sells",
        "websiteUrl": "https://shop.example", "icons": [{"src": "https://shop.example/i.png"}],
    })
}

#[test]
fn a_single_server_is_introduced_by_all_it_says_of_itself_in_every_result() {
    let initialize_result = json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}},
        "serverInfo": introduction(),
    });
    let bridge = crate::Bridge::new(crate::asking().answering("initialize", initialize_result));
    let modern = bridge.modern();
    let named = |response: &Value| {
        response["result"]["_meta"]["io.modelcontextprotocol/serverInfo"].clone()
    };
    let discovered = modern.request("server/discover", json!({}));
    assert_eq!(named(&discovered), introduction(), "{discovered}");
    assert_eq!(named(&modern.request("tools/list", json!({}))), introduction());
    let resources = &discovered["result"]["capabilities"]["resources"];
    assert_eq!(resources.get("subscribe"), None, "{resources}");
    let legacy = HandshakeClient::open(bridge.gateway.address(), "2025-11-25", json!({}), None);
    let initialize_result = &legacy.welcome;
    assert_eq!(initialize_result["serverInfo"], introduction(), "{initialize_result}");
    assert_eq!(
        initialize_result["capabilities"]["resources"].get("subscribe"),
        None,
        "{initialize_result}"
    );
}

#[test]
fn tools_of_several_servers_say_that_they_run_as_tasks() {
    let bad = crate::tasks::working();
    let children = [ScriptedChildren::new(bad), ScriptedChildren::new(crate::asking())];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let tables = ["one", "two"].iter().zip(&children).map(|(name, children)| {
        format!("[upstreams.{name}]\ncommand = {}\n", json!(children.command()))
    });
    let tables: String = tables.collect();
    fs::write(&file, format!("[server]\nname = \"gateway\"\n\n{tables}")).unwrap();
    let gateway = ListeningServer::start(&[&file.display().to_string()]).unwrap();
    let client = HandshakeClient::open(gateway.address(), "2025-11-25", json!({}), None);
    assert!(client.welcome["capabilities"]["tasks"].is_object(), "{}", client.welcome);
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let job = tools.iter().find(|tool| tool["name"] == "one__job").unwrap();
    assert_eq!(job["execution"]["taskSupport"], "required", "{job}");
}
