//! Tools with one input request: sampling, a form, or a URL elicitation.

use creole::input::{ElicitAction, ElicitResult, form, sample, url_elicitation};
use creole::proto::model::InputRequest;
use creole::proto::revision::InputRequestStyle;
use creole::proto::wire::Raw;
use creole::{Context, Tool, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::packs::{NO_ARGUMENTS, tool};

const PROMPT: &str = r#"{
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "What to ask the model"}},
    "required": ["prompt"],
    "additionalProperties": false
}"#;

const MESSAGE: &str = r#"{
    "type": "object",
    "properties": {"message": {"type": "string", "description": "What to ask the person"}},
    "required": ["message"],
    "additionalProperties": false
}"#;

/// A form with a default for each kind of field (SEP-1034).
const DEFAULTS: &str = r#"{
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "User name", "default": "John Doe"},
        "age": {"type": "integer", "description": "User age", "default": 30},
        "score": {"type": "number", "description": "User score", "default": 95.5},
        "status": {
            "type": "string",
            "description": "User status",
            "enum": ["active", "inactive", "pending"],
            "default": "active"
        },
        "verified": {"type": "boolean", "description": "Verification status", "default": true}
    },
    "required": []
}"#;

/// A form with each kind of choice (SEP-1330).
const CHOICES: &str = r#"{
    "type": "object",
    "properties": {
        "untitledSingle": {
            "type": "string", "description": "Select one", "enum": ["option1", "option2", "option3"]
        },
        "titledSingle": {
            "type": "string",
            "description": "Select one by its title",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"}
            ]
        },
        "legacyEnum": {
            "type": "string",
            "description": "Select one, the old way",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]
        },
        "untitledMulti": {
            "type": "array",
            "description": "Select some",
            "minItems": 1,
            "maxItems": 3,
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]}
        },
        "titledMulti": {
            "type": "array",
            "description": "Select some by their titles",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"}
                ]
            }
        }
    },
    "required": []
}"#;

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool("test_sampling", "Asks the client's model", PROMPT, sampling),
        tool("test_elicitation", "Asks the person", MESSAGE, elicitation),
        tool(
            "test_elicitation_sep1034_defaults",
            "Shows a form with defaults",
            NO_ARGUMENTS,
            defaults,
        ),
        tool("test_elicitation_sep1330_enums", "Shows a form with choices", NO_ARGUMENTS, choices),
        tool("test_elicitation_url", "Asks the person to visit a page", NO_ARGUMENTS, url),
        tool(
            "test_missing_capability",
            "Needs a client that samples",
            NO_ARGUMENTS,
            needs_sampling,
        ),
        tool("test_streaming_elicitation", "Asks after a sign of life", NO_ARGUMENTS, streaming),
    ]
}

#[derive(Deserialize)]
struct SamplingInput {
    prompt: String,
}

async fn sampling(input: SamplingInput, context: Context) -> Result<String, ToolError> {
    let result = context.sample("response", sample(&input.prompt, 100))?;
    Ok(format!("LLM response: {}", result.text()))
}

#[derive(Deserialize)]
struct ElicitationInput {
    message: String,
}

async fn elicitation(input: ElicitationInput, context: Context) -> Result<String, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    let result = context.elicit_with("response", form(&input.message, &schema))?;
    Ok(format!("User response: {}", describe_response(&result)))
}

async fn defaults(_: Value, context: Context) -> Result<String, ToolError> {
    let input_request =
        form("Please review and update the form fields with defaults", &Raw::from_static(DEFAULTS));
    elicit_and_describe(&context, input_request)
}

async fn choices(_: Value, context: Context) -> Result<String, ToolError> {
    elicit_and_describe(
        &context,
        form("Please select options from the enum fields", &Raw::from_static(CHOICES)),
    )
}

async fn url(_: Value, context: Context) -> Result<String, ToolError> {
    elicit_and_describe(
        &context,
        url_elicitation("Please confirm on this page", "https://example.com/confirm"),
    )
}

/// Sends the input request without checking the client's capabilities, where the client itself refuses it. Many servers
/// do so.
async fn needs_sampling(_: Value, context: Context) -> Result<String, ToolError> {
    let input_request = sample("Say hello", 100);
    let result = match context.caller().rules.input_request_style {
        InputRequestStyle::Inline if !context.is_task() => {
            let response = context.request_input(input_request).await.map_err(ToolError::failed)?;
            serde_json::from_str(response.as_str())
                .map_err(|error| ToolError::failed(error.to_string()))?
        }
        InputRequestStyle::Inline | InputRequestStyle::MultiRoundTrip => {
            context.sample("response", input_request)?
        }
    };
    Ok(format!("LLM response: {}", result.text()))
}

async fn streaming(_: Value, context: Context) -> Result<String, ToolError> {
    context.progress(1.0, Some(2.0), Some("about to ask")).await;
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
    });
    elicit_and_describe(&context, form("What is your name?", &schema))
}

fn elicit_and_describe(
    context: &Context,
    input_request: InputRequest,
) -> Result<String, ToolError> {
    let result = context.elicit_with("response", input_request)?;
    Ok(format!("Elicitation completed: {}", describe_response(&result)))
}

/// The user's action, in the suite's wording.
fn describe_response(result: &ElicitResult) -> String {
    let action = match result.action {
        ElicitAction::Accept => "accept",
        ElicitAction::Decline => "decline",
        ElicitAction::Cancel => "cancel",
    };
    let nothing = json!({});
    format!("action={action}, content={}", result.content.as_ref().unwrap_or(&nothing))
}
