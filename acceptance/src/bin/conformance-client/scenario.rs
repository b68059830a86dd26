//! The actions of each scenario of the suite.

use std::env;
use std::sync::Arc;

use creole::client::{Address, Client, ClientBuilder, HttpAddress};
use creole::proto::dialect::builtin;
use creole::proto::fault::Fault;
use creole::proto::model::{InputRequest, ListKind};
use creole::proto::revision::{Era, Revision};
use creole::proto::wire::Raw;
use serde_json::{Map, Value, json};

use super::{oauth, skills};

/// The prefix of the scenarios that need a login.
const OAUTH: &str = "auth/";

/// Performs the scenario that the environment names.
pub(super) async fn perform(url: &str) -> Result<(), String> {
    let name = variable("MCP_CONFORMANCE_SCENARIO")?;
    let client = connect(url, &name).await?;
    match name.as_str() {
        "initialize" | "json-schema-ref-no-deref" | "request-metadata" => tools(&client).await?,
        "tools_call" => call(&client, "add_numbers", &json!({"a": 5, "b": 3})).await?,
        "elicitation-sep1034-client-defaults" => {
            call(&client, "test_client_elicitation_defaults", &json!({})).await?;
        }
        "sse-retry" => call(&client, "test_reconnection", &json!({})).await?,
        "http-standard-headers" => everything(&client).await?,
        "http-custom-headers" => calls_of_the_context(&client).await?,
        "http-invalid-tool-headers" => every_tool(&client, &json!({"region": "us-west1"})).await?,
        "json-schema-2020-12-preservation" => echo_schema(&client).await?,
        "sep-2322-client-request-state" => every_tool(&client, &json!({})).await?,
        "sep-2640-client-no-prefetch" => {
            client.list(ListKind::Skills).await.map_err(fault_text)?;
        }
        _ if name.starts_with(OAUTH) => call(&client, "test-tool", &json!({})).await?,
        _ if name.starts_with("sep-2640-client-verify-") => skills::load_all(&client).await?,
        _ => return Err(format!("unknown scenario `{name}`")),
    }
    client.close().await;
    Ok(())
}

/// Connects in the era of the revision that the suite names. The revision itself is negotiated with the server.
async fn connect(url: &str, scenario: &str) -> Result<Client, String> {
    let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION").ok();
    let revision = version.as_deref().and_then(Revision::from_name);
    let mut dialect = builtin("spec").ok_or("the dialect `spec` is built in")?;
    if let Some(revision) = revision {
        let is_stateless = revision.rules().era == Era::Stateless;
        (dialect.stateless, dialect.handshake) = (is_stateless, !is_stateless);
    }
    let mut address = HttpAddress::new("suite", url).map_err(fault_text)?;
    if scenario.starts_with(OAUTH) {
        address = address.credentials(Arc::new(oauth::credentials(url, scenario)?));
    }
    let client = ClientBuilder::new("creole-conformance-client", env!("CARGO_PKG_VERSION"));
    let client = client
        .dialect(dialect)
        .on_form(|input_request| std::future::ready(filled_in(input_request)));
    client.connect(Address::Http(address)).await.map_err(fault_text)
}

/// A form with every default filled in, and every other boolean set to true.
fn filled_in(input_request: InputRequest) -> Option<Raw> {
    let InputRequest::Form { schema, .. } = input_request else { return None };
    let schema: Value = schema.decode().ok()?;
    let mut content = Map::new();
    for (name, property) in schema["properties"].as_object()? {
        let yes = || (property["type"] == "boolean").then_some(Value::Bool(true));
        if let Some(value) = property.get("default").cloned().or_else(yes) {
            content.insert(name.clone(), value);
        }
    }
    Some(Raw::from_value(&json!({"action": "accept", "content": content})))
}

async fn tools(client: &Client) -> Result<(), String> {
    client.list(ListKind::Tools).await.map(drop).map_err(fault_text)
}

/// Lists the tools, as any host does first, and calls one.
async fn call(client: &Client, tool: &str, arguments: &Value) -> Result<(), String> {
    tools(client).await?;
    client.call_tool(tool, arguments).await.map(drop).map_err(fault_text)
}

/// Calls every callable tool.
async fn every_tool(client: &Client, arguments: &Value) -> Result<(), String> {
    for tool in client.list(ListKind::Tools).await.map_err(fault_text)? {
        client.call_tool(tool.name(), arguments).await.map_err(fault_text)?;
    }
    Ok(())
}

/// Calls every tool, reads every resource, gets every prompt.
async fn everything(client: &Client) -> Result<(), String> {
    every_tool(client, &json!({})).await?;
    for resource in client.list(ListKind::Resources).await.map_err(fault_text)? {
        client.read_resource(resource.name()).await.map_err(fault_text)?;
    }
    for prompt in client.list(ListKind::Prompts).await.map_err(fault_text)? {
        client.get_prompt(prompt.name(), &json!({})).await.map_err(fault_text)?;
    }
    Ok(())
}

/// Makes the calls that the context lists.
async fn calls_of_the_context(client: &Client) -> Result<(), String> {
    let context = variable("MCP_CONFORMANCE_CONTEXT")?;
    let context: Value = serde_json::from_str(&context).map_err(|error| error.to_string())?;
    tools(client).await?;
    for expected in context["toolCalls"].as_array().into_iter().flatten() {
        let tool = expected["name"].as_str().unwrap_or_default();
        client.call_tool(tool, &expected["arguments"]).await.map_err(fault_text)?;
    }
    Ok(())
}

/// Sends the schema of one tool back through another, unchanged.
async fn echo_schema(client: &Client) -> Result<(), String> {
    let rules = client.connection().greeting().rules;
    let tools = client.list(ListKind::Tools).await.map_err(fault_text)?;
    let tool = tools.iter().find(|tool| tool.name() == "json_schema_2020_12_tool");
    let tool = Raw::parse(tool.ok_or("the tool with the schema is missing")?.text(rules));
    let tool = tool.map_err(|error| error.to_string())?;
    let schema = tool.as_object().and_then(|tool| tool.get("inputSchema")).ok_or("no schema")?;
    let arguments = Raw::parse(&format!(r#"{{"schema":{schema}}}"#));
    let arguments = arguments.map_err(|error| error.to_string())?;
    client.call_tool("json_schema_echo", &arguments).await.map(drop).map_err(fault_text)
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("{name} is not set: run this by the conformance suite"))
}

/// The text of the fault.
pub(super) fn fault_text(fault: Fault) -> String {
    format!("{:?}: {fault:?}", fault.kind)
}
