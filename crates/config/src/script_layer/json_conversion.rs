//! Converts calls and results to the JSON that scripts see, and back. Unchanged values keep their exact text.

use creole::Call;
use creole_proto::fault::Fault;
use creole_proto::model::{Content, Contents, Implementation};
use creole_proto::operation::{Operation, Outcome, Payload, RelayedKind, RelayedResult};
use creole_proto::revision::Rules;
use creole_proto::wire::Raw;
use creole_tools::script::ScriptError;
use serde_json::{Map, Value, json};

/// A call as JSON for a script.
pub(crate) fn call_to_json(call: &Call) -> String {
    let client = call.context.caller().client.as_ref();
    let client = client.and_then(|message| message.decode::<Implementation>().ok());
    let client = client.map(
        |implementation| json!({ "name": implementation.name, "version": implementation.version }),
    );
    let mut seen = subject_fields(&call.operation);
    seen.insert("principal".to_owned(), json!(call.context.principal().id()));
    seen.insert("client".to_owned(), json!(client));
    Value::Object(seen).to_string()
}

/// The members that identify the request.
fn subject_fields(operation: &Operation) -> Map<String, Value> {
    let arguments = |arguments: &Option<Raw>| {
        let given = arguments.as_ref().and_then(|raw| raw.decode::<Value>().ok());
        given.unwrap_or_else(|| json!({}))
    };
    let mut seen = Map::from_iter([("method".to_owned(), json!(operation.method()))]);
    match operation {
        Operation::CallTool { name, arguments: given }
        | Operation::GetPrompt { name, arguments: given } => {
            seen.insert("name".to_owned(), json!(name));
            seen.insert("arguments".to_owned(), arguments(given));
        }
        Operation::ReadResource { uri } => _ = seen.insert("uri".to_owned(), json!(uri)),
        _ => {}
    }
    seen
}

/// The call that a script forwards, or why it is invalid.
pub(crate) fn call_from_json(call: &Call, text: &str) -> Result<Call, String> {
    let refusal =
        |description: &str| json!({ "message": description, "name": "TypeError" }).to_string();
    let expected: Value =
        serde_json::from_str(text).map_err(|_| refusal("the argument of `next` is not a call"))?;
    if expected["method"] != json!(call.operation.method()) {
        return Err(refusal("the argument of `next` has another `method` than the call"));
    }
    let mut call = call.clone();
    match &mut call.operation {
        Operation::CallTool { name, arguments } | Operation::GetPrompt { name, arguments } => {
            *name = string(&expected, "name").ok_or_else(|| refusal("the call has no `name`"))?;
            let given = expected.get("arguments").filter(|value| !value.is_null()).cloned();
            let item = given.unwrap_or_else(|| json!({}));
            if !item.is_object() {
                return Err(refusal("the `arguments` of the call are not an object"));
            }
            let before = arguments.as_ref().and_then(|raw| raw.decode::<Value>().ok());
            if !is_same_value(&before.unwrap_or_else(|| json!({})), &item) {
                *arguments = Some(Raw::from_value(&item));
            }
        }
        Operation::ReadResource { uri } => {
            *uri = string(&expected, "uri").ok_or_else(|| refusal("the call has no `uri`"))?;
        }
        _ => {}
    }
    Ok(call)
}

fn string(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// The outcome of a forwarded call.
pub(crate) struct ForwardedCall {
    pub(crate) outcome: Outcome,
    /// The result as the script saw it.
    result_json: Option<Value>,
}

impl ForwardedCall {
    pub(crate) fn new(outcome: Outcome) -> Self {
        let shown = match &outcome {
            Outcome::Complete(payload) => payload_to_json(payload),
            _ => None,
        };
        Self { outcome, result_json: shown }
    }

    /// The result or fault for the script. `None` if the call has not ended.
    pub(crate) fn script_result(&self) -> Option<Result<String, String>> {
        match (&self.outcome, &self.result_json) {
            (Outcome::Fail(fault), _) => Some(Err(fault_to_json(fault))),
            (_, Some(shown)) => Some(Ok(shown.to_string())),
            _ => None,
        }
    }

    /// The fault itself, if the script rethrew it.
    pub(crate) fn rethrown_outcome(self, error: &ScriptError) -> Option<Outcome> {
        match &self.outcome {
            Outcome::Fail(fault)
                if fault_text(fault) == error.message
                    && error.kind.as_deref() == Some(fault.kind.name()) =>
            {
                Some(self.outcome)
            }
            _ => None,
        }
    }
}

/// A fault as JSON for a script.
fn fault_to_json(fault: &Fault) -> String {
    let data: Option<Value> = fault.data.as_ref().and_then(|data| data.decode().ok());
    json!({ "message": fault_text(fault), "kind": fault.kind.name(), "data": data }).to_string()
}

/// The message of a fault, or its kind if it has none.
fn fault_text(fault: &Fault) -> String {
    match fault.detail.is_empty() {
        true => format!("{}: {}", fault.kind.name(), fault.subject),
        false => fault.detail.clone(),
    }
}

/// A result in the newest revision's shape.
fn payload_to_json(payload: &Payload) -> Option<Value> {
    Some(match payload {
        Payload::Tool(result) => {
            let mut shown = json!({ "content": result.content, "isError": result.is_error });
            if let Some(data) =
                result.structured.as_ref().and_then(|raw| raw.decode::<Value>().ok())
            {
                shown["structuredContent"] = data;
            }
            if let Some(meta) = result.meta.as_ref().and_then(|raw| raw.decode::<Value>().ok()) {
                shown["_meta"] = meta;
            }
            shown
        }
        Payload::Contents(contents, _) => json!({ "contents": contents }),
        Payload::Prompt(result) => {
            json!({ "description": result.description, "messages": result.messages })
        }
        Payload::Relayed(relayed) => relayed.result().decode().ok()?,
        _ => return None,
    })
}

/// The outcome that a script returned for a call, or why it is invalid.
pub(crate) fn outcome_from_json(
    text: Option<&str>,
    call: &Call,
    last: Option<ForwardedCall>,
) -> Result<Outcome, String> {
    let Some(text) = text else { return Err("`request` returned nothing".to_owned()) };
    let value: Value = serde_json::from_str(text)
        .map_err(|_| "`request` returned a value that is nested too deep")?;
    if let Some(last) = last
        .filter(|last| last.result_json.as_ref().is_some_and(|item| is_same_value(item, &value)))
    {
        return Ok(last.outcome);
    }
    call.context.record_change();
    let (kind, result) = match &call.operation {
        Operation::CallTool { .. } => (RelayedKind::Tool, tool_result(value)?),
        Operation::ReadResource { uri } => (RelayedKind::Contents, contents(value, uri)?),
        _ => (RelayedKind::Prompt, prompt(value)?),
    };
    let rules = Rules::CANONICAL;
    Ok(Outcome::Complete(Payload::Relayed(RelayedResult::new(
        Raw::from_value(&result),
        rules,
        kind,
    ))))
}

/// Converts a value to a tool result: an object with `content` stays, a string becomes text, and everything else
/// becomes structured data.
fn tool_result(value: Value) -> Result<Value, String> {
    match value {
        Value::String(text) => Ok(json!({ "content": [Content::text(text)], "isError": false })),
        Value::Object(result) if result.contains_key("content") => {
            let blocks = serde_json::from_value::<Vec<Content>>(result["content"].clone());
            let wrong = |error| format!("`request` returned invalid `content`: {error}");
            blocks.map(|_| Value::Object(result)).map_err(wrong)
        }
        data => {
            let text = Content::text(data.to_string());
            Ok(json!({ "content": [text], "structuredContent": data, "isError": false }))
        }
    }
}

fn contents(value: Value, uri: &str) -> Result<Value, String> {
    match value {
        Value::String(text) => Ok(json!({ "contents": [Contents::text(uri, "text/plain", text)] })),
        Value::Object(result) => {
            let held = result.get("contents").cloned().unwrap_or_default();
            let wrong = |error| format!("`request` returned invalid `contents`: {error}");
            serde_json::from_value::<Vec<Contents>>(held).map_err(wrong)?;
            Ok(Value::Object(result))
        }
        _ => Err("`request` returned neither a string nor an object with `contents`".to_owned()),
    }
}

fn prompt(value: Value) -> Result<Value, String> {
    let wrong = || "`request` returned neither a string nor an object with `messages`".to_owned();
    match value {
        Value::String(text) => {
            Ok(json!({ "messages": [{ "role": "user", "content": Content::text(text) }] }))
        }
        Value::Object(result) => {
            let messages = result.get("messages").and_then(Value::as_array).ok_or_else(wrong)?;
            let is_message = |message: &Value| {
                let block = serde_json::from_value::<Content>(message["content"].clone());
                matches!(message["role"].as_str(), Some("user" | "assistant")) && block.is_ok()
            };
            messages.iter().all(is_message).then_some(()).ok_or_else(wrong)?;
            Ok(Value::Object(result))
        }
        _ => Err(wrong()),
    }
}

/// Whether two values are equal for a script, which has one kind of numbers.
fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same_value(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| {
                    other.get(key).is_some_and(|item| is_same_value(value, item))
                })
        }
        (one, other) => one == other,
    }
}
