//! `creole call`: calls one tool.

use std::io;
use std::io::Read;

use creole::client::{CallToolResult, Client};
use creole::proto::model::ListKind;
use creole::proto::wire::{Object, Raw};
use creole_tools::ordered_value::OrderedValue;
use serde_json::{Value, json};

use super::only_word;
use crate::args::CallArgs;
use crate::failure::Failure;
use crate::output::render::{blocks, for_stdout};
use crate::session::{SessionPurpose, call_failure, with_client};
use crate::{output, target, tool_arguments};

/// The maximum number of bytes read from stdin for arguments.
const MAX_STDIN: u64 = 16 * 1024 * 1024;

/// Runs the verb.
pub(crate) fn run(args: &CallArgs) -> Result<(), Failure> {
    let (place, rest) = target::target_and_words(&args.words, &args.peer)?;
    let tool = only_word(rest, "the tool", "creole list")?;
    let name = place.name().to_owned();
    let object = args.object.as_deref().map(object).transpose()?;
    for entry in &args.arguments {
        tool_arguments::split_argument(entry)?;
    }
    let result = with_client(place, &args.peer, SessionPurpose::Call, async |client| {
        let schema = schema(client, &name, tool).await?;
        let arguments = match &object {
            Some(object) => object.clone(),
            None => tool_arguments::typed_arguments(tool, &schema, &args.arguments)?,
        };
        let result = client.call_tool(tool, &arguments).await;
        result.map(CallToolResult::into_raw).map_err(|fault| call_failure(&name, &fault))
    })?;
    show(tool, &result, args.peer.json)
}

/// The arguments that are given as one object.
fn object(text: &str) -> Result<OrderedValue, Failure> {
    let mut stdin = String::new();
    let text = match text {
        "-" => {
            let read = io::stdin().lock().take(MAX_STDIN).read_to_string(&mut stdin);
            read.map_err(|error| Failure::Usage(format!("cannot read stdin: {error}")))?;
            &stdin
        }
        text => text,
    };
    match serde_json::from_str(text) {
        Ok(object @ OrderedValue::Object(_)) => Ok(object),
        Ok(_) => {
            Err(Failure::Usage("`--args` takes a JSON object, such as `{\"a\":1}`".to_owned()))
        }
        Err(error) => Err(Failure::Usage(format!("`--args` takes a JSON object: {error}"))),
    }
}

/// The schema of the tool's arguments, as the server wrote it. The list also determines the mirrored headers.
async fn schema(client: &Client, name: &str, tool: &str) -> Result<String, Failure> {
    let tools = client.list(ListKind::Tools).await.map_err(|fault| call_failure(name, &fault))?;
    let Some(definition) = tools.iter().find(|item| item.name() == tool) else {
        let known: Vec<&str> = tools.iter().map(|item| item.name()).collect();
        return Err(Failure::Call(super::unknown_name(name, "tool", tool, &known)));
    };
    let rules = client.connection().greeting().rules;
    let schema = Object::new(definition.text(rules)).and_then(|tool| tool.get("inputSchema"));
    Ok(schema.unwrap_or_default().to_owned())
}

/// Prints the result of the tool. An error result has no data to print, but a reason.
fn show(tool: &str, result: &Raw, as_json: bool) -> Result<(), Failure> {
    let read: Value = result.decode().unwrap_or(json!({}));
    let is_error = read["isError"] == true;
    if as_json {
        output::write_data(&format!("{}\n", result.as_str()))?;
    }
    let text = text(&read, result);
    match (is_error, as_json) {
        (true, _) => Err(Failure::Call(match text.trim() {
            "" => format!("the tool `{tool}` failed without a message"),
            text => format!("the tool `{tool}` failed: {}", output::printable(text)),
        })),
        (false, true) => Ok(()),
        (false, false) => output::write_data(&for_stdout(&text)),
    }
}

/// The content, or else the structured content in its original order.
fn text(result: &Value, value: &Raw) -> String {
    let has_content = result["content"].as_array().is_some_and(|content| !content.is_empty());
    let structured = value.as_object().and_then(|result| result.get("structuredContent"));
    match structured.and_then(|text| serde_json::from_str::<OrderedValue>(text).ok()) {
        Some(structured) if !has_content => {
            serde_json::to_string_pretty(&structured).unwrap_or_default()
        }
        _ => blocks(&result["content"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structured_content_is_printed_without_other_content() {
        let text = |output: &str| {
            let value = Raw::parse(output).unwrap();
            text(&value.decode().unwrap(), &value)
        };
        let structured = r#"{"content":[],"structuredContent":{"z":1,"a":2}}"#;
        assert_eq!(text(structured), "{\n  \"z\": 1,\n  \"a\": 2\n}");
        let both = r#"{"content":[{"type":"text","text":"five"}],"structuredContent":5}"#;
        assert_eq!(text(both), "five");
    }

    #[test]
    fn only_an_object_is_accepted_as_arguments() {
        assert_eq!(object("{\"z\":1,\"a\":2}").unwrap().to_string(), "{\"z\":1,\"a\":2}");
        assert!(object("[1]").unwrap_err().to_string().contains("JSON object"));
        assert!(object("{").unwrap_err().to_string().contains("EOF"));
    }
}
