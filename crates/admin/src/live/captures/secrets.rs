//! Hides secrets in messages: what the layers of the server hide, and members with the name of a secret.

use creole::internal::telemetry::CallRecord;
use serde_json::Value;

/// What is shown instead of a secret.
const HIDDEN: &str = "•••";
/// Members whose values are never shown, in lower case without `-` and `_`.
const SECRET_NAMES: [&str; 8] = [
    "authorization",
    "cookie",
    "password",
    "passwd",
    "secret",
    "apikey",
    "privatekey",
    "credential",
];
/// Members that are secrets if their name ends so.
const SECRET_ENDS: [&str; 2] = ["token", "passphrase"];
/// Members that only look like secrets.
const HARMLESS_NAMES: [&str; 2] = ["progresstoken", "maxtoken"];

/// The text without secrets, and whether something was replaced. `None` if it cannot be read.
pub(super) fn redact(record: &CallRecord, text: &str) -> Option<(String, bool)> {
    let hidden = match record.redactor() {
        Some(redactor) => redactor(text),
        None => text.to_owned(),
    };
    let mut value: Value = serde_json::from_str(&hidden).ok()?;
    match hide_secrets(&mut value) {
        true => Some((value.to_string(), true)),
        false => {
            let is_changed = hidden != text;
            Some((hidden, is_changed))
        }
    }
}

/// Replaces the values of members that are secrets by their name; whether there were any.
fn hide_secrets(value: &mut Value) -> bool {
    let mut is_changed = false;
    match value {
        Value::Array(values) => {
            values.iter_mut().for_each(|value| is_changed |= hide_secrets(value));
        }
        Value::Object(members) => {
            for (name, value) in members {
                if is_secret(name) && !value.is_null() && !is_schema(value) {
                    *value = HIDDEN.into();
                    is_changed = true;
                } else {
                    is_changed |= hide_secrets(value);
                }
            }
        }
        _ => {}
    }
    is_changed
}

/// Whether a value is the schema of a secret, as in a list of tools, and not a secret.
fn is_schema(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.contains_key("type") || members.contains_key("$ref"))
}

fn is_secret(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(|character| !matches!(character, '-' | '_'))
        .flat_map(char::to_lowercase)
        .collect();
    !HARMLESS_NAMES.contains(&plain.trim_end_matches('s'))
        && (SECRET_NAMES.iter().any(|secret| plain.contains(secret))
            || SECRET_ENDS.iter().any(|end| plain.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_are_secrets_by_their_name_are_hidden_wherever_they_are() {
        let mut message = json!({"id": 1, "params": {"_meta": {"progressToken": 7}, "arguments": {
            "Authorization": "Bearer a", "api_key": "b", "list": [{"accessToken": "c"}],
            "client-secret": {"value": "d"}, "maxTokens": 5, "name": "e", "password": null}}});
        assert!(hide_secrets(&mut message));
        assert_eq!(
            message,
            json!({"id": 1, "params": {"_meta": {"progressToken": 7}, "arguments": {
            "Authorization": HIDDEN, "api_key": HIDDEN, "list": [{"accessToken": HIDDEN}],
            "client-secret": HIDDEN, "maxTokens": 5, "name": "e", "password": null}}})
        );
        let mut schema = json!({"properties": {"password": {"type": "string"}}});
        assert!(!hide_secrets(&mut schema));
    }
}
