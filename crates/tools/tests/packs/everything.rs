//! Tests of the pack `everything`, which the conformance suite and our own tests use.

use std::time::{Duration, Instant};

use creole_tools::PackOptions;
use serde_json::{Value, json};

use crate::support::{PackClient, serve_packs, text_of};

fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

async fn session() -> PackClient {
    PackClient::session(&serve_packs(&["everything"], &PackOptions::default()), all_capabilities())
        .await
}

fn modern(capabilities: Value) -> PackClient {
    PackClient::modern(&serve_packs(&["everything"], &PackOptions::default()), capabilities)
}

fn accept_response(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn sampling_response(text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    json!({"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"})
}

fn roots_response() -> Value {
    json!({"roots": [{"uri": "file:///test/root", "name": "Test Root"}]})
}

/// Calls a tool again with input responses, as clients of 2026-07-28 do.
async fn retry_with_responses(
    client: &mut PackClient,
    tool: &str,
    request: &Value,
    responses: Value,
) -> Value {
    let mut params = json!({"name": tool, "arguments": {}, "inputResponses": responses});
    if let Some(state) = request.get("requestState") {
        params["requestState"] = state.clone();
    }
    client.request("tools/call", params).await
}

#[tokio::test]
async fn content_comes_in_every_kind() {
    let mut client = session().await;
    let text = client.text("test_simple_text", json!({})).await;
    assert_eq!(text, "This is a simple text response for testing.");
    let image = client.call("test_image_content", json!({})).await;
    assert_eq!(image["content"][0]["mimeType"], "image/png");
    let audio = client.call("test_audio_content", json!({})).await;
    assert_eq!(
        (&audio["content"][0]["type"], &audio["content"][0]["mimeType"]),
        (&json!("audio"), &json!("audio/wav"))
    );
    let embedded = client.call("test_embedded_resource", json!({})).await;
    let resource = json!({
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    });
    assert_eq!(embedded["content"], json!([{"type": "resource", "resource": resource}]));
    let mixed = client.call("test_multiple_content_types", json!({})).await;
    let kinds: Vec<_> =
        mixed["content"].as_array().unwrap().iter().map(|block| &block["type"]).collect();
    assert_eq!(kinds, ["text", "image", "resource"]);
    let link = client.call("test_resource_link", json!({})).await;
    assert_eq!(link["content"][0]["type"], "resource_link");
    let failure = client.failure("test_error_handling", json!({})).await;
    assert_eq!(failure, "This tool intentionally returns an error for testing");
}

#[tokio::test]
async fn progress_is_sent_three_times() {
    let mut client = session().await;
    let params = json!({
        "name": "test_tool_with_progress", "arguments": {}, "_meta": {"progressToken": "progress-test-1"},
    });
    client.request("tools/call", params).await;
    let values: Vec<_> = client
        .notifications
        .iter()
        .map(|sent| sent["params"]["progress"].as_f64().unwrap())
        .collect();
    assert_eq!(values, [0.0, 50.0, 100.0]);
}

#[tokio::test]
async fn logs_reach_a_session_that_set_a_level() {
    let mut client = session().await;
    client.request("logging/setLevel", json!({"level": "debug"})).await;
    client.text("test_tool_with_logging", json!({})).await;
    let logged: Vec<_> =
        client.notifications.iter().map(|sent| sent["params"]["data"].as_str().unwrap()).collect();
    assert_eq!(
        logged,
        ["Tool execution started", "Tool processing data", "Tool execution completed"]
    );
}

#[tokio::test]
async fn log_messages_reach_a_stateless_request_only_with_a_level() {
    let mut client = modern(json!({}));
    client.text("test_logging_tool", json!({})).await;
    assert!(client.notifications.is_empty());
    let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
    let params = json!({"name": "test_logging_tool", "arguments": {}, "_meta": meta});
    client.request("tools/call", params).await;
    assert_eq!(client.notifications.len(), 1);
}

#[tokio::test]
async fn a_session_gets_an_input_request_during_a_call() {
    let mut client = session().await;
    client.input_responses.push(("sampling/createMessage", sampling_response("Paris")));
    let text = client.text("test_sampling", json!({"prompt": "Capital of France?"})).await;
    assert_eq!(text, "LLM response: Paris");
    assert_eq!(
        client.input_requests[0]["params"]["messages"][0]["content"]["text"],
        "Capital of France?"
    );
    assert_eq!(client.input_requests[0]["params"]["maxTokens"], 100);

    let filled = accept_response(json!({"username": "ada", "email": "ada@example.com"}));
    client.input_responses.push(("elicitation/create", filled));
    let text = client.text("test_elicitation", json!({"message": "Who?"})).await;
    assert_eq!(
        text,
        r#"User response: action=accept, content={"email":"ada@example.com","username":"ada"}"#
    );
    assert_eq!(client.input_requests[1]["params"]["message"], "Who?");
    assert_eq!(
        client.input_requests[1]["params"]["requestedSchema"]["required"],
        json!(["username", "email"])
    );
}

#[tokio::test]
async fn forms_carry_defaults_and_every_kind_of_choice() {
    let mut client = session().await;
    client.input_responses.push(("elicitation/create", json!({"action": "decline"})));
    let text = client.text("test_elicitation_sep1034_defaults", json!({})).await;
    assert_eq!(text, "Elicitation completed: action=decline, content={}");
    let fields = &client.input_requests[0]["params"]["requestedSchema"]["properties"];
    assert_eq!(fields["name"]["default"], "John Doe");
    assert_eq!(fields["age"]["default"], 30);
    assert_eq!(fields["score"]["default"], 95.5);
    assert_eq!(fields["status"]["default"], "active");
    assert_eq!(fields["verified"]["default"], true);

    client.input_responses.push(("elicitation/create", json!({"action": "cancel"})));
    client.text("test_elicitation_sep1330_enums", json!({})).await;
    let fields = &client.input_requests[1]["params"]["requestedSchema"]["properties"];
    assert!(fields["untitledSingle"]["enum"].is_array());
    assert_eq!(fields["titledSingle"]["oneOf"][0]["const"], "value1");
    assert_eq!(fields["legacyEnum"]["enumNames"].as_array().unwrap().len(), 3);
    assert!(fields["untitledMulti"]["items"]["enum"].is_array());
    assert_eq!(fields["titledMulti"]["items"]["anyOf"][2]["title"], "Third Choice");
}

#[tokio::test]
async fn a_url_elicitation_is_sent() {
    let mut client = session().await;
    client.input_responses.push(("elicitation/create", json!({"action": "accept"})));
    let text = client.text("test_elicitation_url", json!({})).await;
    assert_eq!(text, "Elicitation completed: action=accept, content={}");
    assert_eq!(client.input_requests[0]["params"]["mode"], "url");
    assert_eq!(client.input_requests[0]["params"]["url"], "https://example.com/confirm");
}

#[tokio::test]
async fn a_session_answers_round_after_round() {
    let mut client = session().await;
    client.input_responses.push(("elicitation/create", accept_response(json!({"name": "Ada"}))));
    client.input_responses.push(("elicitation/create", accept_response(json!({"colour": "blue"}))));
    assert_eq!(client.text("test_two_questions", json!({})).await, "Ada likes blue");
    assert_eq!(
        client.input_requests[1]["params"]["message"],
        "What is the favourite colour of Ada?"
    );

    client.input_responses.push(("elicitation/create", accept_response(json!({"city": "Berlin"}))));
    client.input_responses.push(("elicitation/create", accept_response(json!({"colour": "grey"}))));
    assert_eq!(client.text("test_parallel_questions", json!({})).await, "Berlin is grey");

    client.input_responses.push(("elicitation/create", accept_response(json!({"name": "Ada"}))));
    client.input_responses.push(("sampling/createMessage", sampling_response("Hi")));
    client.input_responses.push(("roots/list", roots_response()));
    let text = client.text("test_input_required_result_multiple_inputs", json!({})).await;
    assert_eq!(text, "Hi Ada, roots: 1");
}

#[tokio::test]
async fn a_modern_client_is_asked_by_the_suites_keys() {
    for (tool, key, method, response, expected) in [
        (
            "elicitation",
            "user_name",
            "elicitation/create",
            accept_response(json!({"name": "Ada"})),
            "Hello, Ada!",
        ),
        (
            "sampling",
            "capital_question",
            "sampling/createMessage",
            sampling_response("Paris"),
            "Paris",
        ),
        ("list_roots", "client_roots", "roots/list", roots_response(), "Roots: file:///test/root"),
        (
            "request_state",
            "confirm",
            "elicitation/create",
            accept_response(json!({"ok": true})),
            "state-ok",
        ),
        (
            "tampered_state",
            "confirm",
            "elicitation/create",
            accept_response(json!({"ok": true})),
            "state-ok",
        ),
    ] {
        let mut client = modern(all_capabilities());
        let tool = format!("test_input_required_result_{tool}");
        let asked = client.call(&tool, json!({})).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(asked["inputRequests"].as_object().unwrap().len(), 1);
        assert_eq!(asked["inputRequests"][key]["method"], method, "{asked}");
        let done = retry_with_responses(&mut client, &tool, &asked, json!({key: response})).await;
        assert_eq!(text_of(&done["result"]), expected);
    }
}

#[tokio::test]
async fn a_tampered_state_is_refused() {
    let mut client = modern(all_capabilities());
    let tool = "test_input_required_result_tampered_state";
    let mut request = client.call(tool, json!({})).await;
    request["requestState"] =
        json!(format!("{}-TAMPERED", request["requestState"].as_str().unwrap()));
    let responses = json!({"confirm": accept_response(json!({"ok": true}))});
    let refused = retry_with_responses(&mut client, tool, &request, responses).await;
    assert_eq!(refused["error"]["code"], -32602);
}

#[tokio::test]
async fn a_stateless_client_goes_through_two_rounds() {
    let mut client = modern(all_capabilities());
    let tool = "test_input_required_result_multi_round";
    let first = client.call(tool, json!({})).await;
    assert!(first["inputRequests"]["step1"].is_object());
    let second = retry_with_responses(
        &mut client,
        tool,
        &first,
        json!({"step1": accept_response(json!({"name": "Ada"}))}),
    )
    .await;
    let second = second["result"].clone();
    assert!(second["inputRequests"]["step2"].is_object());
    assert_ne!(first["requestState"], second["requestState"]);
    let done = retry_with_responses(
        &mut client,
        tool,
        &second,
        json!({"step2": accept_response(json!({"color": "blue"}))}),
    )
    .await;
    assert_eq!(text_of(&done["result"]), "Ada likes blue");
}

#[tokio::test]
async fn invalid_input_responses_are_requested_again_or_refused() {
    let mut client = modern(all_capabilities());
    let tool = "test_input_required_result_elicitation";
    let invalid = retry_with_responses(
        &mut client,
        tool,
        &json!({}),
        json!({"wrong_key": accept_response(json!({}))}),
    )
    .await;
    assert_eq!(invalid["result"]["resultType"], "input_required");
    let extra =
        json!({"user_name": accept_response(json!({"name": "Ada"})), "more": {"action": "accept"}});
    let done = retry_with_responses(&mut client, tool, &json!({}), extra).await;
    assert_eq!(text_of(&done["result"]), "Hello, Ada!");
    let odd =
        retry_with_responses(&mut client, tool, &json!({}), json!({"user_name": 12345})).await;
    assert!(odd.get("error").is_some() || odd["result"]["resultType"] == "input_required", "{odd}");
}

#[tokio::test]
async fn input_is_requested_only_for_declared_capabilities() {
    let mut client = modern(json!({"sampling": {}}));
    let received = client.call("test_input_required_result_capabilities", json!({})).await;
    let requests = received["inputRequests"].as_object().unwrap();
    let methods: Vec<_> = requests.values().map(|request| &request["method"]).collect();
    assert_eq!(methods, ["sampling/createMessage"]);

    let mut client = modern(json!({}));
    let params = json!({"name": "test_missing_capability", "arguments": {}});
    let refused = client.request("tools/call", params).await;
    assert_eq!(refused["error"]["code"], -32021);
    assert_eq!(refused["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
}

#[tokio::test]
async fn a_prompt_may_request_input_first() {
    let mut client = modern(all_capabilities());
    let name = "test_input_required_result_prompt";
    let request = client.request("prompts/get", json!({"name": name})).await;
    assert!(request["result"]["inputRequests"]["user_context"].is_object(), "{request}");
    let responses = json!({"user_context": accept_response(json!({"context": "tests"}))});
    let state = &request["result"]["requestState"];
    let params = json!({"name": name, "inputResponses": responses, "requestState": state});
    let done = client.request("prompts/get", params).await;
    assert_eq!(done["result"]["messages"][0]["content"]["text"], "Use this context: tests");
}

#[tokio::test]
async fn prompts_carry_arguments_resources_and_pictures() {
    let mut client = session().await;
    let simple = client.request("prompts/get", json!({"name": "test_simple_prompt"})).await;
    assert_eq!(
        simple["result"]["messages"][0]["content"]["text"],
        "This is a simple prompt for testing."
    );
    let arguments = json!({"arg1": "hello", "arg2": "world"});
    let params = json!({"name": "test_prompt_with_arguments", "arguments": arguments});
    let filled = client.request("prompts/get", params).await;
    let text = &filled["result"]["messages"][0]["content"]["text"];
    assert_eq!(text, "Prompt with arguments: arg1='hello', arg2='world'");
    let arguments = json!({"resourceUri": "test://example"});
    let params = json!({"name": "test_prompt_with_embedded_resource", "arguments": arguments});
    let embedded = client.request("prompts/get", params).await;
    assert_eq!(embedded["result"]["messages"][0]["content"]["resource"]["uri"], "test://example");
    let picture = client.request("prompts/get", json!({"name": "test_prompt_with_image"})).await;
    assert_eq!(picture["result"]["messages"][0]["content"]["mimeType"], "image/png");
    let params = json!({
        "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
        "argument": {"name": "arg1", "value": "test"},
    });
    let completed = client.request("completion/complete", params).await;
    assert_eq!(completed["result"]["completion"]["values"], json!(["test1", "test2"]));
}

#[tokio::test]
async fn resources_can_be_read_and_watched() {
    let mut client = session().await;
    let listed = client.request("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"][0]["uri"], "test://static-text");
    let read = client.request("resources/read", json!({"uri": "test://static-text"})).await;
    let text = &read["result"]["contents"][0]["text"];
    assert_eq!(text, "This is the content of the static text resource.");
    let read = client.request("resources/read", json!({"uri": "test://static-binary"})).await;
    assert!(read["result"]["contents"][0]["blob"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    let read = client.request("resources/read", json!({"uri": "test://template/123/data"})).await;
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains("123"));

    let watched = json!({"uri": "test://watched-resource"});
    client.request("resources/subscribe", watched.clone()).await;
    client.text("test_touch_resource", json!({})).await;
    let updated = client.notification("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], watched["uri"]);
    let read = client.request("resources/read", watched).await;
    let text = &read["result"]["contents"][0]["text"];
    assert_eq!(text, "Watched resource content, touched 1 times");
}

#[tokio::test]
async fn lists_change_and_clients_are_told() {
    let mut client = session().await;
    let count = |listed: &Value, list: &str| listed["result"][list].as_array().unwrap().len();
    for (tool, list) in
        [("test_trigger_tool_change", "tools"), ("test_trigger_prompt_change", "prompts")]
    {
        let before = client.request(&format!("{list}/list"), json!({})).await;
        client.text(tool, json!({})).await;
        client.notification(&format!("notifications/{list}/list_changed")).await;
        let after = client.request(&format!("{list}/list"), json!({})).await;
        assert_eq!(count(&after, list), count(&before, list) + 1);
        client.text(tool, json!({})).await;
        client.notification(&format!("notifications/{list}/list_changed")).await;
        let last = client.request(&format!("{list}/list"), json!({})).await;
        assert_eq!(last["result"], before["result"]);
    }
}

#[tokio::test]
async fn a_schema_reaches_the_client_as_it_was_written() {
    let mut client = modern(json!({}));
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools[0]["name"], "test_simple_text");
    let named = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let schema = &named("json_schema_2020_12_tool")["inputSchema"];
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["$defs"]["address"]["$anchor"], "addressDef");
    assert_eq!(schema["allOf"][0]["anyOf"][1]["required"], json!(["email"]));
    assert_eq!(schema["if"]["required"], json!(["contactMethod"]));
    assert_eq!(schema["additionalProperties"], false);
    let header = &named("test_custom_header")["inputSchema"]["properties"]["value"];
    assert_eq!(header["x-mcp-header"], "Value");

    let arguments =
        json!({"name": "Ada", "contactMethod": "phone", "phone": "1", "address": {"city": "x"}});
    client.text("json_schema_2020_12_tool", arguments).await;
    client
        .failure("json_schema_2020_12_tool", json!({"contactMethod": "phone", "email": "x"}))
        .await;
    assert_eq!(client.text("greet", json!({"name": "Ada"})).await, "Hello, Ada!");
}

#[tokio::test]
async fn structured_content_has_a_schema() {
    let mut client = modern(json!({}));
    let one = client.call("test_structured", json!({})).await;
    assert_eq!(one["structuredContent"], json!({"city": "Berlin", "temperature": 21.5}));
    let many = client.call("test_structured_list", json!({})).await;
    assert_eq!(many["structuredContent"].as_array().unwrap().len(), 2);
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let schema =
        |name: &str| &tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"];
    assert_eq!(schema("test_structured")["type"], "object");
    assert_eq!(schema("test_structured_list")["type"], "array");

    let mut client = session().await;
    let many = client.call("test_structured_list", json!({})).await;
    assert_eq!(many["structuredContent"]["result"].as_array().unwrap().len(), 2, "{many}");
}

#[tokio::test]
async fn a_panic_is_an_error_and_the_server_continues() {
    let mut client = session().await;
    let broken = client.request("tools/call", json!({"name": "test_panic", "arguments": {}})).await;
    assert_eq!(broken["error"]["code"], -32603, "{broken}");
    client.text("test_simple_text", json!({})).await;
}

#[tokio::test]
async fn a_slow_call_can_be_cancelled() {
    let mut client = session().await;
    let started = Instant::now();
    assert_eq!(client.text("test_slow", json!({"milliseconds": 20})).await, "Slept 20 ms");
    let params = json!({"name": "test_slow", "arguments": {"milliseconds": 600_000}});
    let slow = client.send("tools/call", params).await;
    client.notify("notifications/cancelled", json!({"requestId": slow})).await;
    client.text("test_simple_text", json!({})).await;
    assert!(started.elapsed() < Duration::from_secs(10));
}
