//! Tests of two upstreams behind one server: their items are merged, and each call goes to its own upstream.

use std::fs;

use creole_acceptance::gateway::{ScriptedChildren, ScriptedReplies, StatelessClient};
use creole_acceptance::http::ListeningServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::text;

/// A server with one item of each kind, whose URIs begin with its name.
fn everything(name: &str) -> ScriptedReplies {
    let initialize_result = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "completions": {}},
        "serverInfo": {"name": name, "version": "1"},
        "instructions": format!("Ask {name} first."),
    });
    let resource = json!({"uri": format!("{name}://one"), "name": "one"});
    let template =
        json!({"uriTemplate": format!("{name}://by/{{id}}"), "name": format!("{name}-by")});
    ScriptedReplies::new("2025-11-25", json!({}), &["ask"])
        .answering("initialize", initialize_result)
        .answering("prompts/list", json!({"prompts": [{"name": "greet"}]}))
        .answering("resources/list", json!({"resources": [resource]}))
        .answering("resources/templates/list", json!({"resourceTemplates": [template]}))
}

struct Merged {
    north: ScriptedChildren,
    south: ScriptedChildren,
    gateway: ListeningServer,
    _folder: TempDir,
}

impl Merged {
    /// A gateway in front of two servers, each with additional keys in its table.
    fn new(north: ScriptedReplies, south: ScriptedReplies, more: &str) -> Self {
        let (north, south) = (ScriptedChildren::new(north), ScriptedChildren::new(south));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("gateway.toml");
        let table = |name: &str, children: &ScriptedChildren| {
            format!("[upstreams.{name}]\n{more}command = {}\n", json!(children.command()))
        };
        let tables = table("north", &north) + &table("south", &south);
        fs::write(&file, format!("[server]\nname = \"gateway\"\n\n{tables}")).unwrap();
        let gateway = ListeningServer::start(&[&file.display().to_string()]).unwrap();
        Self { north, south, gateway, _folder: folder }
    }

    fn client(&self) -> StatelessClient {
        StatelessClient::new(self.gateway.address())
    }

    /// The items of a list, by this member.
    #[track_caller]
    fn listed(&self, method: &str, list: &str, member: &str) -> Vec<String> {
        let response = self.client().request(method, json!({}));
        let items = response["result"][list].as_array().unwrap_or_else(|| panic!("{response}"));
        items.iter().map(|item| item[member].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn the_items_of_two_upstreams_are_listed_in_order_under_their_own_names() {
    let merged = Merged::new(everything("north"), everything("south"), "");
    let initialize_result = merged.client().request("server/discover", json!({}));
    let instructions = initialize_result["result"]["instructions"].as_str().unwrap();
    assert_eq!(instructions, "north: Ask north first.\n\nsouth: Ask south first.");
    assert!(
        initialize_result["result"]["capabilities"].get("completions").is_some(),
        "{initialize_result}"
    );
    let rows = [
        ("tools/list", "tools", "name", ["north__ask", "south__ask"]),
        ("prompts/list", "prompts", "name", ["north__greet", "south__greet"]),
        ("resources/list", "resources", "uri", ["north://one", "south://one"]),
        (
            "resources/templates/list",
            "resourceTemplates",
            "uriTemplate",
            ["north://by/{id}", "south://by/{id}"],
        ),
    ];
    for (method, list, member, expected) in rows {
        assert_eq!(merged.listed(method, list, member), expected, "{method}");
    }
}

/// Sends a request, lets the upstream respond with this result, and returns the upstream's params and the client's
/// response.
#[track_caller]
fn forward_request(
    client: &StatelessClient,
    by: &ScriptedChildren,
    request: (&str, Value),
    result: Value,
) -> (Value, Value) {
    let (method, params) = request;
    let mut pending = client.begin(&json!(1), method, params);
    let message = by.hears(method);
    message.result(result);
    let mut params = message.message["params"].clone();
    params.as_object_mut().unwrap().remove("_meta");
    (params, pending.answer())
}

#[test]
fn each_upstream_receives_its_own_item_names() {
    let merged = Merged::new(everything("north"), everything("south"), "");
    let client = merged.client();
    for (name, server) in [("north", &merged.north), ("south", &merged.south)] {
        let call = json!({"name": format!("{name}__ask"), "arguments": {}});
        let message = json!({"content": [{"type": "text", "text": name}]});
        let (params, response) = forward_request(&client, server, ("tools/call", call), message);
        assert_eq!((&params["name"], text(&response)), (&json!("ask"), name));

        let prompt = json!({"name": format!("{name}__greet")});
        let (params, response) =
            forward_request(&client, server, ("prompts/get", prompt), json!({"messages": []}));
        assert_eq!(params["name"], "greet", "{response}");
        assert!(response["result"]["messages"].is_array(), "{response}");

        // A listed resource, and one that matches a template.
        for uri in [format!("{name}://one"), format!("{name}://by/7")] {
            let contents = json!({"contents": [{"uri": uri, "text": name}]});
            let (params, response) =
                forward_request(&client, server, ("resources/read", json!({"uri": uri})), contents);
            assert_eq!(params["uri"], uri);
            assert_eq!(response["result"]["contents"][0]["text"], name, "{response}");
        }

        let argument = json!({"name": "id", "value": "7"});
        let values = json!({"completion": {"values": [name]}});
        let references = [
            (
                json!({"type": "ref/prompt", "name": format!("{name}__greet")}),
                json!({"type": "ref/prompt", "name": "greet"}),
            ),
            (
                json!({"type": "ref/resource", "uri": format!("{name}://by/{{id}}")}),
                json!({"type": "ref/resource", "uri": format!("{name}://by/{{id}}")}),
            ),
        ];
        for (here, there) in references {
            let params = json!({"ref": here, "argument": argument});
            let request = ("completion/complete", params);
            let (params, response) = forward_request(&client, server, request, values.clone());
            assert_eq!(params["ref"], there);
            assert_eq!(response["result"]["completion"]["values"], json!([name]), "{response}");
        }
    }
}

#[test]
fn a_resource_that_nobody_lists_is_read_from_the_one_who_has_it() {
    let merged = Merged::new(everything("north"), everything("south"), "");
    let mut read = merged.client().begin(&json!(1), "resources/read", json!({"uri": "x://hidden"}));
    merged.north.hears("resources/read").error(-32603, "broken", &Value::Null);
    let contents = json!({"contents": [{"uri": "x://hidden", "text": "found"}]});
    merged.south.hears("resources/read").result(contents);
    let response = read.answer();
    assert_eq!(response["result"]["contents"][0]["text"], "found", "{response}");
}

#[test]
fn what_has_the_name_of_another_or_looks_like_it_is_left_out_and_the_log_says_so() {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let theirs = json!({"tools": [tool("ask"), tool("\u{430}sk"), tool("other")]});
    let south = everything("south")
        .answering("tools/list", theirs)
        .answering("prompts/list", json!({"prompts": []}))
        .leaving("initialize");
    let merged = Merged::new(everything("north"), south, "prefix = \"\"\n");
    // The other upstream is ready first.
    let hello = merged.south.hears("initialize");
    let mut called = merged.client().begin_call("ask", json!({}));
    merged.north.hears("tools/call").text("north");
    assert_eq!(text(&called.answer()), "north");
    hello.result(json!({
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "south", "version": "1"},
    }));
    merged.gateway.until_said("is confusable with");
    let log = merged.gateway.log();
    assert!(log.contains("`north` already has") && log.contains("of `north`"), "{log}");
    assert_eq!(merged.listed("tools/list", "tools", "name"), ["ask", "other"]);
}

#[test]
fn a_server_that_never_answers_keeps_no_call_of_the_other_waiting() {
    let silent = everything("south").leaving("server/discover").leaving("initialize");
    let merged = Merged::new(everything("north"), silent, "");
    let _hanging = merged.south.next();
    let client = merged.client();
    let mut call = client.begin_call("north__ask", json!({}));
    merged.north.hears("tools/call").text("at once");
    assert_eq!(text(&call.answer()), "at once");
    assert_eq!(merged.listed("tools/list", "tools", "name"), ["north__ask"]);
}
