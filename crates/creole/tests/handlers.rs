//! Tests of functions as tools, resources and prompts: their parameters, their return types, and the results at a
//! client.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use creole::client::{Client, ClientBuilder, LineServer};
use creole::proto::model::{InputRequest, ListKind};
use creole::proto::revision::Revision;
use creole::proto::wire::Raw;
use creole::stream::memory_pair;
use creole::{
    Content, Context, Json, Prompt, Resource, Server, Template, Tool, ToolError, ToolResult,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Sum {
    sum: i64,
}

async fn connect(server: Server, revision: Revision) -> Client {
    let (near, far) = memory_pair();
    let service = server.start();
    tokio::spawn(async move {
        let (source, sink) = far.split();
        service.serve(source, sink).await
    });
    let (source, sink) = near.split();
    let builder = ClientBuilder::new("test", "1").revision(revision);
    builder.connect_over(Box::new(LineServer::new("server", source, sink))).await.unwrap()
}

async fn definition(client: &Client, name: &str) -> Value {
    let rules = client.connection().greeting().rules;
    let tools = client.list(ListKind::Tools).await.unwrap();
    let tool = tools.iter().find(|tool| tool.name() == name).unwrap();
    serde_json::from_str(tool.text(rules)).unwrap()
}

async fn call(client: &Client, name: &str, arguments: Value) -> Value {
    client.call_tool(name, &arguments).await.unwrap().as_raw().decode().unwrap()
}

#[tokio::test]
async fn a_tool_returns_any_value_with_a_schema_as_structured_content() {
    async fn add(add: Add) -> Result<Sum, ToolError> {
        Ok(Sum { sum: add.a + add.b })
    }
    async fn count() -> u32 {
        3
    }
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let server = Server::new("test")
            .tool(Tool::new("add", "Adds", add))
            .tool(Tool::new("count", "Counts", count));
        let client = connect(server, revision).await;
        let announced = definition(&client, "add").await;
        assert_eq!(announced["outputSchema"]["properties"]["sum"]["type"], "integer");
        let result = call(&client, "add", json!({"a": 1, "b": 2})).await;
        assert_eq!(result["structuredContent"], json!({"sum": 3}));
        assert_eq!(result["content"], json!([{"type": "text", "text": r#"{"sum":3}"#}]));

        let announced = definition(&client, "count").await["outputSchema"].clone();
        let counted = call(&client, "count", json!({})).await;
        // Before 2026-07-28 a structured result is an object.
        let (schema, value) = match revision {
            Revision::V2026_07_28 => (&announced, &counted["structuredContent"]),
            _ => (&announced["properties"]["result"], &counted["structuredContent"]["result"]),
        };
        assert_eq!((&schema["type"], value), (&json!("integer"), &json!(3)));
    }
}

#[tokio::test]
async fn text_and_prepared_results_announce_no_schema() {
    let server = Server::new("test")
        .tool(Tool::new("string", "", async || "text".to_owned()))
        .tool(Tool::new("str", "", async || "text"))
        .tool(Tool::new("fallible", "", async || Ok::<_, std::io::Error>("text")))
        .tool(Tool::new("blocks", "", async || vec![Content::text("text")]))
        .tool(Tool::new("result", "", async || ToolResult::text("text")))
        .tool(Tool::new("json", "", async || Json("text")))
        .tool(Tool::new("nothing", "", async || {}));
    let client = connect(server, Revision::V2025_11_25).await;
    for name in ["string", "str", "fallible", "blocks", "result", "json", "nothing"] {
        assert_eq!(definition(&client, name).await.get("outputSchema"), None, "{name}");
        let result = call(&client, name, json!({})).await;
        let expected = match name {
            "nothing" => json!([]),
            "json" => json!([{"type": "text", "text": "\"text\""}]),
            _ => json!([{"type": "text", "text": "text"}]),
        };
        assert_eq!(result["content"], expected, "{name}");
    }
}

#[tokio::test]
async fn a_tool_without_arguments_accepts_only_the_empty_object() {
    async fn revision(context: Context) -> String {
        context.caller().rules.name.to_owned()
    }
    let server = Server::new("test").tool(Tool::new("revision", "Tells it", revision));
    let client = connect(server, Revision::V2025_11_25).await;
    let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(definition(&client, "revision").await["inputSchema"], schema);
    let result = call(&client, "revision", json!({})).await;
    assert_eq!(result["content"][0]["text"], "2025-11-25");
    let refused = call(&client, "revision", json!({"a": 1})).await;
    assert_eq!(refused["isError"], true, "{refused}");
}

#[tokio::test]
async fn tools_share_a_state_that_is_their_first_parameter() {
    type Total = Arc<AtomicU64>;
    async fn add(total: Total, by: Add) -> u64 {
        let by = u64::try_from(by.a + by.b).unwrap_or_default();
        total.fetch_add(by, Ordering::Relaxed) + by
    }
    async fn add_loudly(total: Total, by: Add, context: Context) -> u64 {
        context.progress(1.0, None, None).await;
        add(total, by).await
    }
    async fn get(total: Total) -> String {
        total.load(Ordering::Relaxed).to_string()
    }
    async fn get_for(total: Total, context: Context) -> String {
        format!("{}: {}", context.caller().rules.name, get(total).await)
    }
    let total = Total::default();
    let server = Server::new("test")
        .tool(Tool::with_state("add", "", &total, add))
        .tool(Tool::with_state("add_loudly", "", &total, add_loudly))
        .tool(Tool::with_state("get", "", &total, get))
        .tool(Tool::with_state("get_for", "", &total, get_for));
    let client = connect(server, Revision::V2025_11_25).await;
    call(&client, "add", json!({"a": 1, "b": 2})).await;
    call(&client, "add_loudly", json!({"a": 3, "b": 4})).await;
    assert_eq!(call(&client, "get", json!({})).await["content"][0]["text"], "10");
    assert_eq!(call(&client, "get_for", json!({})).await["content"][0]["text"], "2025-11-25: 10");
    assert_eq!(total.load(Ordering::Relaxed), 10);
}

#[tokio::test]
async fn a_server_reports_its_own_version_and_not_that_of_the_library() {
    let reported = async |server| {
        let client = connect(server, Revision::V2025_11_25).await;
        client.connection().greeting().server_info.identity.version.clone()
    };
    assert_eq!(reported(Server::new("test")).await, "0.0.0");
    assert_eq!(reported(Server::new("test").version("3.1")).await, "3.1");
}

#[tokio::test]
async fn resources_and_prompts_return_a_string() {
    let page = Resource::new("test://page", "page", |_, _| async { "# Page".to_owned() });
    let user = Template::new("test://users/{id}", "user", |_, variables, _| async move {
        match variables["id"].as_str() {
            "0" => Err(ToolError::failed("user 0 is nobody")),
            id => Ok(format!("user {id}")),
        }
    });
    let greet = Prompt::new("greet", "Greets", |arguments, _| async move {
        format!("Greet {}.", arguments["name"])
    });
    let server = Server::new("test")
        .resource(page.mime_type("text/markdown"))
        .template(user)
        .prompt(greet.required("name", "Whom to greet"));
    let client = connect(server, Revision::V2025_11_25).await;
    let read = async |uri| client.read_resource(uri).await.unwrap().decode::<Value>().unwrap();
    let page = json!([{"uri": "test://page", "mimeType": "text/markdown", "text": "# Page"}]);
    assert_eq!(read("test://page").await["contents"], page);
    let user = json!([{"uri": "test://users/7", "text": "user 7"}]);
    assert_eq!(read("test://users/7").await["contents"], user);
    let fault = client.read_resource("test://users/0").await.unwrap_err();
    assert!(fault.to_string().contains("user 0 is nobody"), "{fault}");
    let got = client.get_prompt("greet", &json!({"name": "Ada"})).await.unwrap();
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "Greet Ada."}}]);
    assert_eq!(got.decode::<Value>().unwrap()["messages"], messages);
}

#[tokio::test]
async fn a_typed_client_reads_what_a_typed_tool_returns_in_every_revision() {
    async fn add(add: Add) -> Result<Sum, ToolError> {
        let sum = add.a.checked_add(add.b).ok_or_else(|| ToolError::failed("too large"))?;
        Ok(Sum { sum })
    }
    async fn count(add: Add) -> Vec<i64> {
        vec![add.a, add.b]
    }
    for revision in Revision::ALL {
        let server = Server::new("test")
            .tool(Tool::new("add", "Adds", add).title("Add"))
            .tool(Tool::new("count", "Counts", count));
        let client = connect(server, revision).await;
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools[0].name, "add");
        assert_eq!(tools[0].description.as_deref(), Some("Adds"));
        assert_eq!(tools[0].input_schema["required"], json!(["a", "b"]));
        let given = json!({"a": 1, "b": 2});
        let sum = client.call_tool("add", &given).await.unwrap().structured::<Sum>();
        assert_eq!(sum, Ok(Sum { sum: 3 }), "{revision:?}");
        let counted = client.call_tool("count", &given).await.unwrap().structured::<Vec<i64>>();
        assert_eq!(counted, Ok(vec![1, 2]), "{revision:?}");
        let failed = client.call_tool("add", &json!({"a": i64::MAX, "b": 1})).await.unwrap();
        assert!(failed.is_error());
        assert_eq!(failed.text(), "too large");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Seat {
    /// Your table
    table: u8,
    outside: Option<bool>,
}

async fn ask(context: Context) -> Result<String, ToolError> {
    let first: Seat = context.elicit("Where do you sit?")?;
    let second = context.elicit::<Seat>("And your friend?")?;
    Ok(format!("{} {:?} {}", first.table, first.outside, second.table))
}

/// Responds to both input requests, to the second one with `action`.
async fn answered(revision: Revision, action: &'static str) -> String {
    let (near, far) = memory_pair();
    let service = Server::new("test").tool(Tool::new("ask", "Asks twice", ask)).start();
    tokio::spawn(async move {
        let (source, sink) = far.split();
        service.serve(source, sink).await
    });
    let (source, sink) = near.split();
    let builder =
        ClientBuilder::new("test", "1").revision(revision).on_form(move |asked| async move {
            let InputRequest::Form { message, schema } = asked else { return None };
            let schema: Value = schema.decode().unwrap();
            assert_eq!(schema["required"], json!(["table"]));
            assert_eq!(schema["properties"]["outside"], json!({"type": "boolean"}));
            let response = match message.as_str() {
                "Where do you sit?" => {
                    json!({"action": "accept", "content": {"table": 4, "outside": true}})
                }
                _ => json!({"action": action, "content": {"table": 5}}),
            };
            Some(Raw::from_value(&response))
        });
    let server = LineServer::new("server", source, sink);
    let client = builder.connect_over(Box::new(server)).await.unwrap();
    client.call_tool("ask", &json!({})).await.unwrap().text()
}

#[tokio::test]
async fn a_typed_form_is_asked_and_read_in_both_eras() {
    for revision in [Revision::V2025_06_18, Revision::V2025_11_25, Revision::V2026_07_28] {
        assert_eq!(answered(revision, "accept").await, "4 Some(true) 5", "{revision:?}");
        let declined = answered(revision, "decline").await;
        assert!(
            declined.ends_with("the user declined the request: And your friend?"),
            "{declined}"
        );
        let closed = answered(revision, "cancel").await;
        assert!(closed.contains("the user cancelled the request"), "{closed}");
    }
}
