//! Checks the requirements of JSON-RPC 2.0 on every message, whatever the revision.

use serde_json::Value;

/// The members that a message may have.
const MEMBERS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Rejects a value that is not a JSON-RPC message.
pub(super) fn check(message: &Value) -> Result<(), String> {
    let members = message.as_object().ok_or("a message must be an object")?;
    if let Some(stranger) = members.keys().find(|key| !MEMBERS.contains(&key.as_str())) {
        return Err(format!("JSON-RPC has no member `{stranger}`"));
    }
    if message["jsonrpc"] != "2.0" {
        return Err("`jsonrpc` must be \"2.0\"".to_owned());
    }
    let has = |key: &str| members.contains_key(key);
    match (has("method"), has("result"), has("error")) {
        (true, false, false) => check_call(message),
        (false, true, false) => check_result(message),
        (false, false, true) => check_error(message),
        _ => Err("a message has exactly one of `method`, `result` and `error`".to_owned()),
    }
}

/// Rejects a response without `id`, as JSON-RPC does if no revision says otherwise.
pub(super) fn check_id(message: &Value) -> Result<(), String> {
    let answers = message.get("method").is_none();
    match answers && message.get("id").is_none() {
        true => Err("a response must have an `id`, if only null".to_owned()),
        false => Ok(()),
    }
}

fn check_call(message: &Value) -> Result<(), String> {
    if !message["method"].is_string() {
        return Err("`method` must be a string".to_owned());
    }
    if message.get("params").is_some_and(|params| !params.is_object()) {
        return Err("`params` must be an object".to_owned());
    }
    match message.get("id") {
        None | Some(Value::String(_) | Value::Number(_)) => Ok(()),
        Some(_) => Err("the `id` of a request must be a string or a number".to_owned()),
    }
}

fn check_result(message: &Value) -> Result<(), String> {
    if !message["result"].is_object() {
        return Err("`result` must be an object".to_owned());
    }
    match &message["id"] {
        Value::String(_) | Value::Number(_) => Ok(()),
        _ => Err("a result must have the `id` of its request".to_owned()),
    }
}

fn check_error(message: &Value) -> Result<(), String> {
    let error = &message["error"];
    if !error["code"].is_i64() || !error["message"].is_string() {
        return Err("an error must have an integer `code` and a string `message`".to_owned());
    }
    match message.get("id") {
        None | Some(Value::Null | Value::String(_) | Value::Number(_)) => Ok(()),
        Some(_) => Err("the `id` of an error must be a string, a number or null".to_owned()),
    }
}
