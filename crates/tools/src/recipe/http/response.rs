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
    options: &ResponseOptions,
    response: &Response<Bytes>,
    values: &ArgumentValues<'_>,
    max_length: usize,
    output: Option<&Schema>,
) -> Result<ToolResult, ToolError> {
    let media = media_type(response);
    let is_shaped = options.pick.is_some() || options.template.is_some();
    let is_data =
        is_json(&media) || options.format == ResponseFormat::Json || options.pick.is_some();
    if is_data && !response.body().is_empty() {
        let value = select_pointer(options.pick.as_deref(), response.body())?;
        return match (&options.template, options.format) {
            (Some(template), _) => render_template(template, &value, response, values, max_length),
            (None, ResponseFormat::Text) => Ok(ToolResult::text(to_plain_text(&value))),
            (None, _) => structured_result(&value, output),
        };
    }
    if !is_shaped && options.format == ResponseFormat::Auto && media.starts_with("image/") {
        return Ok(image_result(response.body(), &media));
    }
    let Ok(printed) = std::str::from_utf8(response.body()) else {
        let bytes = response.body().len();
        let message = format!(
            "the response has {bytes} bytes of the type `{media}`, which is neither text nor \
                JSON nor an image"
        );
        return Err(ToolError::failed(message));
    };
    match &options.template {
        Some(template) => render_template(
            template,
            &OrderedValue::Leaf(printed.into()),
            response,
            values,
            max_length,
        ),
        None if printed.is_empty() => {
            Ok(ToolResult::text(format!("status {}, no body", response.status().as_u16())))
        }
        None => Ok(ToolResult::text(printed)),
    }
}

/// The media type, in lower case and without parameters.
pub(super) fn media_type(response: &Response<Bytes>) -> String {
    let text = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let text = text.unwrap_or_default().split(';').next().unwrap_or_default();
    text.trim().to_ascii_lowercase()
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
    response: &Response<Bytes>,
    values: &ArgumentValues<'_>,
    max_length: usize,
) -> Result<ToolResult, ToolError> {
    let mut environment = environment();
    environment.set_fuel(Some(MAX_TEMPLATE_STEPS));
    let (status, body) = (response.status().as_u16(), minijinja::Value::from(Serde(value)));
    let arguments = minijinja::Value::from(Serde(values.all()));
    let made = environment.render_str(template, context! { body, status, arguments });
    match made {
        Ok(text) if text.len() <= max_length => Ok(ToolResult::text(text)),
        Ok(_) => Err(ToolError::failed(format!("the text is longer than {max_length} bytes"))),
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
