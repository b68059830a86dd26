//! Tools that run as tasks: slow ones, ones that fail or panic, and ones with input requests (SEP-2663).

use std::time::Duration;

use creole::input::{ElicitAction, ElicitResult, form};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::{Context, TaskSupport, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::packs::everything::rounds::text_form;
use crate::packs::{NO_ARGUMENTS, tool};

const COMPUTATION: &str = r#"{
    "type": "object",
    "properties": {
        "seconds": {
            "type": "number", "description": "How long to compute", "minimum": 0, "maximum": 600
        },
        "label": {"type": "string", "description": "What to call the result"}
    },
    "required": ["seconds"],
    "additionalProperties": false
}"#;

const FILENAME: &str = r#"{
    "type": "object",
    "properties": {"filename": {"type": "string", "description": "What to delete"}},
    "required": ["filename"],
    "additionalProperties": false
}"#;

/// The duration of work that only has to be observably slow.
const WORK_TIME: Duration = Duration::from_millis(100);

pub(crate) fn tools() -> Vec<Tool> {
    let optional = |tool: Tool| tool.task(TaskSupport::Optional);
    let required = |tool: Tool| tool.task(TaskSupport::Required);
    vec![
        optional(tool("slow_compute", "Takes its time", COMPUTATION, slow_compute).read_only()),
        required(tool("failing_job", "Fails after a while", NO_ARGUMENTS, failing_job).read_only()),
        optional(
            tool(
                "protocol_error_job",
                "Ends in an error of the protocol",
                NO_ARGUMENTS,
                protocol_error,
            )
            .read_only(),
        ),
        optional(tool(
            "confirm_delete",
            "Asks before it pretends to delete a file",
            FILENAME,
            confirm_delete,
        )),
        optional(tool("multi_input", "Asks two questions at once", NO_ARGUMENTS, multi_input)),
        required(tool(
            "test_tool_with_task",
            "Asks for a name, then goes on as a task",
            NO_ARGUMENTS,
            asks_first,
        ))
        .requests_input_first(),
    ]
}

#[derive(Deserialize)]
struct ComputationInput {
    seconds: f64,
    label: Option<String>,
}

async fn slow_compute(input: ComputationInput) -> String {
    sleep(Duration::from_secs_f64(input.seconds)).await;
    let label = input.label.as_deref().unwrap_or("result");
    format!("Computed {label} in {} seconds", input.seconds)
}

async fn failing_job(_: Value) -> Result<String, ToolError> {
    sleep(WORK_TIME).await;
    Err(ToolError::failed("The job failed, as it always does"))
}

async fn protocol_error(_: Value) -> Result<String, ToolError> {
    sleep(WORK_TIME).await;
    let fault = Fault::new(FaultKind::Internal, "the job broke the protocol, as it always does");
    Err(ToolError::Fault(Box::new(fault)))
}

#[derive(Deserialize)]
struct FilenameInput {
    filename: String,
}

async fn confirm_delete(file: FilenameInput, context: Context) -> Result<String, ToolError> {
    let name = &file.filename;
    let result = context.elicit_with("confirm", yes_or_no(&format!("Delete {name}?")))?;
    Ok(match is_confirmed(&result) {
        true => format!("Deleted {name}"),
        false => format!("Kept {name}"),
    })
}

async fn multi_input(_: Value, context: Context) -> Result<String, ToolError> {
    let name = || text_form("What is your name?", "name");
    let confirm = || yes_or_no("Go on?");
    let ask = |key: &str, input_request| KeyedInputRequest {
        key: key.to_owned(),
        question: input_request,
    };
    context.request_inputs(vec![ask("name", name()), ask("confirm", confirm())])?;
    let named = context.elicit_with("name", name())?;
    let confirmed = is_confirmed(&context.elicit_with("confirm", confirm())?);
    let name = named.text("name").unwrap_or_else(|| "unknown".to_owned());
    Ok(format!("{name} said {}", if confirmed { "yes" } else { "no" }))
}

async fn asks_first(_: Value, context: Context) -> Result<String, ToolError> {
    let result = context.elicit_with("user_name", text_form("What is your name?", "name"))?;
    context.detach()?;
    sleep(WORK_TIME).await;
    let name = result.text("name").unwrap_or_else(|| "stranger".to_owned());
    Ok(format!("Hello, {name}, from a task!"))
}

fn yes_or_no(message: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": {"confirm": {"type": "boolean"}},
        "required": ["confirm"],
    });
    form(message, &schema)
}

fn is_confirmed(result: &ElicitResult) -> bool {
    let confirmed = result.content.as_ref().and_then(|content| content.get("confirm"));
    result.action == ElicitAction::Accept && confirmed == Some(&Value::Bool(true))
}
