//! Tools that need input responses, in one or several rounds (SEP-2322).

use creole::input::{form, sample};
use creole::proto::model::{InputRequest, KeyedInputRequest};
use creole::{Context, Tool, ToolError};
use serde_json::{Value, json};

use crate::packs::{NO_ARGUMENTS, tool};

pub(crate) fn tools() -> Vec<Tool> {
    vec![
        tool(
            "test_input_required_result_elicitation",
            "Needs the person's name",
            NO_ARGUMENTS,
            elicitation,
        ),
        tool("test_input_required_result_sampling", "Needs the model", NO_ARGUMENTS, sampling),
        tool("test_input_required_result_list_roots", "Needs the roots", NO_ARGUMENTS, roots),
        tool(
            "test_input_required_result_request_state",
            "Needs a yes",
            NO_ARGUMENTS,
            request_confirmation,
        ),
        tool(
            "test_input_required_result_tampered_state",
            "Needs a yes, untampered",
            NO_ARGUMENTS,
            request_confirmation,
        ),
        tool(
            "test_input_required_result_multiple_inputs",
            "Needs three answers",
            NO_ARGUMENTS,
            multiple,
        ),
        tool(
            "test_input_required_result_multi_round",
            "Needs two rounds",
            NO_ARGUMENTS,
            multi_round,
        ),
        tool(
            "test_input_required_result_capabilities",
            "Needs whatever the client can do",
            NO_ARGUMENTS,
            request_what_is_supported,
        ),
        tool(
            "test_two_questions",
            "Asks a second question about the first",
            NO_ARGUMENTS,
            two_input_requests,
        ),
        tool(
            "test_parallel_questions",
            "Asks two questions at once",
            NO_ARGUMENTS,
            parallel_questions,
        ),
    ]
}

/// A form with one text field.
pub(crate) fn text_form(message: &str, field: &str) -> InputRequest {
    let schema = json!({
        "type": "object",
        "properties": {field: {"type": "string"}},
        "required": [field],
    });
    form(message, &schema)
}

fn name_form() -> InputRequest {
    text_form("What is your name?", "name")
}

fn keyed_request(key: &str, input_request: InputRequest) -> KeyedInputRequest {
    KeyedInputRequest { key: key.to_owned(), question: input_request }
}

/// The text that the user entered, or a placeholder if the user declined.
fn request_text(
    context: &Context,
    key: &str,
    input_request: InputRequest,
    field: &str,
) -> Result<String, ToolError> {
    let result = context.elicit_with(key, input_request)?;
    Ok(result.text(field).unwrap_or_else(|| "unknown".to_owned()))
}

async fn elicitation(_: Value, context: Context) -> Result<String, ToolError> {
    let name = request_text(&context, "user_name", name_form(), "name")?;
    Ok(format!("Hello, {name}!"))
}

async fn sampling(_: Value, context: Context) -> Result<String, ToolError> {
    let result =
        context.sample("capital_question", sample("What is the capital of France?", 100))?;
    Ok(result.text())
}

async fn roots(_: Value, context: Context) -> Result<String, ToolError> {
    let roots = context.roots("client_roots")?;
    let uris: Vec<_> = roots.iter().map(|root| root.uri.as_str()).collect();
    Ok(format!("Roots: {}", uris.join(", ")))
}

async fn request_confirmation(_: Value, context: Context) -> Result<&'static str, ToolError> {
    let schema = json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
    });
    context.elicit_with("confirm", form("Please confirm", &schema))?;
    Ok("state-ok")
}

async fn multiple(_: Value, context: Context) -> Result<String, ToolError> {
    let greeting = sample("Generate a greeting", 50);
    context.request_inputs(vec![
        keyed_request("user_name", name_form()),
        keyed_request("greeting", greeting.clone()),
        keyed_request("client_roots", InputRequest::Roots),
    ])?;
    let name = request_text(&context, "user_name", name_form(), "name")?;
    let greeting = context.sample("greeting", greeting)?.text();
    let roots = context.roots("client_roots")?.len();
    Ok(format!("{greeting} {name}, roots: {roots}"))
}

async fn multi_round(_: Value, context: Context) -> Result<String, ToolError> {
    let name =
        request_text(&context, "step1", text_form("Step 1: What is your name?", "name"), "name")?;
    let input_request = text_form("Step 2: What is your favorite color?", "color");
    let color = request_text(&context, "step2", input_request, "color")?;
    Ok(format!("{name} likes {color}"))
}

async fn request_what_is_supported(_: Value, context: Context) -> Result<String, ToolError> {
    let client = &context.caller().capabilities;
    let input_requests = [
        keyed_request("user_name", name_form()),
        keyed_request("greeting", sample("Generate a greeting", 50)),
        keyed_request("client_roots", InputRequest::Roots),
    ];
    let asks: Vec<_> =
        input_requests.into_iter().filter(|ask| ask.question.is_allowed_by(client)).collect();
    let count = asks.len();
    context.request_inputs(asks)?;
    Ok(format!("The client can be asked in {count} ways"))
}

async fn two_input_requests(_: Value, context: Context) -> Result<String, ToolError> {
    let name = request_text(&context, "name", name_form(), "name")?;
    let input_request = text_form(&format!("What is the favourite colour of {name}?"), "colour");
    let colour = request_text(&context, "colour", input_request, "colour")?;
    Ok(format!("{name} likes {colour}"))
}

async fn parallel_questions(_: Value, context: Context) -> Result<String, ToolError> {
    let city = || text_form("Which city?", "city");
    let colour = || text_form("Which colour?", "colour");
    context
        .request_inputs(vec![keyed_request("city", city()), keyed_request("colour", colour())])?;
    let city = request_text(&context, "city", city(), "city")?;
    let colour = request_text(&context, "colour", colour(), "colour")?;
    Ok(format!("{city} is {colour}"))
}
