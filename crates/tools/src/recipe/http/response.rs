//! Converts a response to a tool result.

use bytes::Bytes;
use creole::{Schema, ToolError, ToolResult};
use http::Response;
use http::header::CONTENT_TYPE;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};

use super::{ResponseFormat, ResponseOptions};
use crate::ordered_value::OrderedValue;
use crate::recipe::argument::{ArgumentValues, text};
use crate::recipe::tool_result::{image_result, structured_result};

/// Maximum number of steps of a template.
const MAX_TEMPLATE_STEPS: u64 = 1_000_000;

/// The result for a response.
pub(crate) fn to_tool_result(
    wanted: &ResponseOptions,
    answer: &Response<Bytes>,
    values: &ArgumentValues<'_>,
    longest: usize,
    output: Option<&Schema>,
) -> Result<ToolResult, ToolError> {
    let media = media_type(answer);
    let is_shaped = wanted.pick.is_some() || wanted.template.is_some();
    let is_data = is_json(&media) || wanted.format == ResponseFormat::Json || wanted.pick.is_some();
    if is_data && !answer.body().is_empty() {
        let value = select_pointer(wanted.pick.as_deref(), answer.body())?;
        return match (&wanted.template, wanted.format) {
            (Some(template), _) => render_template(template, &value, answer, values, longest),
            (None, ResponseFormat::Text) => Ok(ToolResult::text(to_plain_text(&value))),
            (None, _) => structured_result(&value, output),
        };
    }
    if !is_shaped && wanted.format == ResponseFormat::Auto && media.starts_with("image/") {
        return Ok(image_result(answer.body(), &media));
    }
    let Ok(said) = std::str::from_utf8(answer.body()) else {
        let bytes = answer.body().len();
        let what = format!(
            "the response has {bytes} bytes of the type `{media}`, which is neither text nor \
                JSON nor an image"
        );
        return Err(ToolError::failed(what));
    };
    match &wanted.template {
        Some(template) => {
            render_template(template, &OrderedValue::Leaf(said.into()), answer, values, longest)
        }
        None if said.is_empty() => {
            Ok(ToolResult::text(format!("status {}, no body", answer.status().as_u16())))
        }
        None => Ok(ToolResult::text(said)),
    }
}

/// The media type, in lower case and without parameters.
pub(super) fn media_type(answer: &Response<Bytes>) -> String {
    let said = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let said = said.unwrap_or_default().split(';').next().unwrap_or_default();
    said.trim().to_ascii_lowercase()
}

fn is_json(media: &str) -> bool {
    media == "application/json" || media.ends_with("+json")
}

/// The selected part of the JSON.
fn select_pointer(pointer: Option<&str>, body: &[u8]) -> Result<OrderedValue, ToolError> {
    let value: OrderedValue = serde_json::from_slice(body)
        .map_err(|error| ToolError::failed(format!("the response is not JSON: {error}")))?;
    let Some(pointer) = pointer else { return Ok(value) };
    value
        .at_pointer(pointer)
        .ok_or_else(|| ToolError::failed(format!("the response has no value at `{pointer}`")))
}

/// Data as plain text: a string without its quotes.
fn to_plain_text(value: &OrderedValue) -> String {
    match value {
        OrderedValue::Leaf(leaf) => text(leaf),
        data => data.to_string(),
    }
}

/// Renders the template with a response.
fn render_template(
    template: &str,
    value: &OrderedValue,
    answer: &Response<Bytes>,
    values: &ArgumentValues<'_>,
    longest: usize,
) -> Result<ToolResult, ToolError> {
    let mut environment = environment();
    environment.set_fuel(Some(MAX_TEMPLATE_STEPS));
    let (status, body) = (answer.status().as_u16(), minijinja::Value::from(Serde(value)));
    let arguments = minijinja::Value::from(Serde(values.all()));
    let made = environment.render_str(template, context! { body, status, arguments });
    match made {
        Ok(text) if text.len() <= longest => Ok(ToolResult::text(text)),
        Ok(_) => Err(ToolError::failed(format!("the text is longer than {longest} bytes"))),
        Err(error) => {
            Err(ToolError::failed(format!("the template failed for this response: {error}")))
        }
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    // A missing member is empty and does not fail the whole result.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
}

/// Checks a template.
///
/// # Errors
/// The error in the template.
pub fn check_template(template: &str) -> Result<(), String> {
    environment().template_from_str(template).map(|_| ()).map_err(|error| error.to_string())
}
