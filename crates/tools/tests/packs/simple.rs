//! Tests of the small packs, as a client sees them.

use creole_tools::{PACKS, PackOptions};
use serde_json::{Value, json};

use crate::support::{PackClient, serve_packs};

async fn client(packs: &[&str]) -> PackClient {
    PackClient::session(&serve_packs(packs, &PackOptions::default()), json!({})).await
}

#[tokio::test]
async fn hello_greets() {
    let mut client = client(&["hello"]).await;
    assert_eq!(client.text("hello", json!({"name": "World"})).await, "Hello, World!");
    let listed = client.request("tools/list", json!({})).await;
    let expected = json!([{
        "name": "hello",
        "description": "Returns a greeting message",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string", "description": "Name to greet"}},
            "required": ["name"],
            "additionalProperties": false,
        },
    }]);
    assert_eq!(listed["result"]["tools"], expected);
}

#[tokio::test]
async fn hello_wants_a_name_and_nothing_else() {
    let mut client = client(&["hello"]).await;
    assert!(client.failure("hello", json!({})).await.contains("name"));
    assert!(client.failure("hello", json!({"name": "a", "nam": "b"})).await.contains("nam"));
}

#[tokio::test]
async fn echo_returns_its_message() {
    let mut client = client(&["echo"]).await;
    let message = "line\n\"quoted\" \u{1f980}";
    assert_eq!(client.text("echo", json!({"message": message})).await, message);
}

#[tokio::test]
async fn calculate_calculates_and_reports_errors() {
    let mut client = client(&["calculate"]).await;
    assert_eq!(client.text("calculate", json!({"expression": "1 + 2"})).await, "3");
    assert_eq!(client.failure("calculate", json!({"expression": "1/0"})).await, "division by zero");
    let unknown = client.failure("calculate", json!({"expression": "1 + x"})).await;
    assert_eq!(unknown, "unknown name `x` at character 5");
    let long = json!({"expression": "1".repeat(1001)});
    assert!(client.failure("calculate", long).await.contains("1000"));
}

#[tokio::test]
async fn the_guide_can_be_read_and_its_prompts_rendered() {
    let mut client = client(&["guide"]).await;
    let read = client.request("resources/read", json!({"uri": "creole://guide"})).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/markdown");
    assert!(contents["text"].as_str().unwrap().starts_with("# Using this server"));

    let listed = client.request("prompts/list", json!({})).await;
    assert_eq!(listed["result"]["prompts"][0]["name"], "introduce");
    let introduced = client.request("prompts/get", json!({"name": "introduce"})).await;
    assert_eq!(introduced["result"]["messages"][0]["role"], "user");

    let arguments = json!({"goal": "ship it", "tone": "formal"});
    let planned =
        client.request("prompts/get", json!({"name": "plan_task", "arguments": arguments})).await;
    let text = planned["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("ship it") && text.contains("formal") && text.contains("create_task"));
    let refused = client.request("prompts/get", json!({"name": "plan_task"})).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test]
async fn the_tone_of_a_plan_is_completed() {
    let mut client = client(&["guide"]).await;
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "plan_task"},
        "argument": {"name": "tone", "value": "f"},
    });
    let completed = client.request("completion/complete", params).await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["friendly", "formal"]));
}

/// Code generators turn schemas into types, so objects are closed and every property has a description.
#[tokio::test]
async fn every_schema_that_is_not_a_fixture_is_closed_and_described() {
    // The pack `skills` has no tools and requires a folder.
    let apart = ["everything", "skills"];
    let with_tools = |name: &&str| !apart.contains(name);
    let packs: Vec<_> = PACKS.iter().map(|(name, _)| *name).filter(with_tools).collect();
    let mut client = client(&packs).await;
    let listed = client.request("tools/list", json!({})).await;
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let (name, schema) = (&tool["name"], &tool["inputSchema"]);
        assert_eq!(schema["type"], "object", "{name}");
        assert_eq!(schema["additionalProperties"], json!(false), "{name}");
        assert!(schema["required"].is_array(), "{name}");
        assert!(!schema.to_string().contains("$ref"), "{name}");
        for (property, described) in schema["properties"].as_object().unwrap() {
            assert!(described["description"].is_string(), "{name}.{property}");
            assert!(matches!(described["type"], Value::String(_)), "{name}.{property}");
        }
    }
}
