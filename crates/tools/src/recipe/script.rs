//! Tools that call a function of a script.

use creole::proto::fault::{Fault, FaultKind};
use creole::proto::wire::Raw;
use creole::{Schema, ToolError, ToolResult};
use serde_json::Value;

use super::argument::ArgumentValues;
use super::tool_result;
use crate::script::{Function, Script, ScriptError, ScriptStep};

/// Calls the tool of a script. A string becomes text, any other value structured data.
pub(super) async fn call(
    script: &Script,
    values: &ArgumentValues<'_>,
    max_length: usize,
    output: Option<&Schema>,
) -> Result<ToolResult, ToolError> {
    let arguments = Value::Object(values.all().clone()).to_string();
    let begun = script.begin(Function::Tool, vec![arguments]).await;
    let mut session = begun.map_err(|error| to_tool_error(script, &error))?;
    let returned = loop {
        match session.next_step().await {
            ScriptStep::Done(done) => {
                break done.map_err(|error| to_tool_error(script, &error))?;
            }
            // A tool has no next handler to forward to.
            ScriptStep::Next(number, _) => {
                let refusal = r#"{"message":"a tool script cannot call `next`"}"#;
                session.resume(number, Err(refusal.to_owned()));
            }
        }
    };
    let Some(text) = returned else {
        return Err(ToolError::failed("the script of this tool returned no result"));
    };
    if text.len() > max_length {
        let message = format!("the result of the script has more than {max_length} bytes");
        return Err(ToolError::failed(message));
    }
    let is_text = output.is_none() && text.starts_with('"');
    match serde_json::from_str::<String>(&text) {
        Ok(text) if is_text => Ok(ToolResult::text(text)),
        _ if output.is_none() => match Raw::parse(&text) {
            Ok(data) => Ok(ToolResult::structured(data)),
            Err(_) => Err(ToolError::failed("the result of the script is nested too deep")),
        },
        _ => tool_result::structured_result(&serde_json::from_str(&text)?, output),
    }
}

/// The error for callers about a script that threw. Bugs of the script are reported with their position, for the
/// operator.
fn to_tool_error(script: &Script, error: &ScriptError) -> ToolError {
    let message = script.explain_error(error);
    match error.kind.as_deref().and_then(FaultKind::from_name) {
        Some(kind) if error.is_deliberate() => {
            ToolError::Fault(Box::new(Fault::new(kind, message)))
        }
        _ => ToolError::failed(message),
    }
}
