//! Converts one server of a client's configuration to a table.

mod bridge;

use creole_tools::ordered_value::OrderedValue;
use serde_json::Value;

use crate::commands::setup::import::secrets::ExtractedSecrets;

/// Members that are converted, or that can be ignored without a note.
const KNOWN_MEMBERS: [&str; 13] = [
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "type",
    "transport",
    "disabled",
    "enabled",
    "name",
];

/// The table of one server. `None` if the entry does not say how to reach it.
pub(crate) fn table(
    name: &str,
    server: &OrderedValue,
    secrets: &mut ExtractedSecrets,
) -> Option<String> {
    let mut lines = vec![format!("[upstreams.{name}]")];
    let url = ["url", "serverUrl", "httpUrl"].iter().find_map(|key| server[*key].as_str());
    match (server["command"].as_str(), url) {
        (Some(_), _) if bridge::is_bridge(server) => {
            lines.extend(bridge::lines(name, server, secrets))
        }
        (Some(command), _) => lines.extend(program(name, command, server, secrets)),
        (None, Some(url)) => {
            lines.push(format!("url = {}", quoted(&secrets.url(name, url))));
            lines.extend(entries("headers", &server["headers"], |key, value| {
                secrets.header(name, key, value)
            }));
        }
        (None, None) => {
            secrets.note(format!("`{name}` has neither `command` nor `url`; it was not imported"));
            return None;
        }
    }
    if server["disabled"] == true || server["enabled"] == false {
        lines.push("enabled = false".to_owned());
    }
    let unknown: Vec<String> = server
        .members()
        .iter()
        .filter(|(key, _)| !KNOWN_MEMBERS.contains(&key.as_str()))
        .map(|(key, _)| format!("`{key}`"))
        .collect();
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        secrets.note(format!("ignored keys of `{name}`, which Creole does not support: {unknown}"));
    }
    lines.push(String::new());
    Some(lines.join("\n"))
}

fn program(
    name: &str,
    command: &str,
    server: &OrderedValue,
    secrets: &mut ExtractedSecrets,
) -> Vec<String> {
    let mut words = vec![quoted(&secrets.text(name, command))];
    let args: Vec<String> = server["args"].items().iter().filter_map(scalar_text).collect();
    words.extend(secrets.arguments(name, &args).iter().map(|arg| quoted(arg)));
    let mut lines = vec![format!("command = [{}]", words.join(", "))];
    if let Some(folder) = server["cwd"].as_str() {
        lines.push(format!("cwd = {}", quoted(&secrets.text(name, folder))));
    }
    lines.extend(entries("env", &server["env"], |key, value| secrets.variable(name, key, value)));
    lines
}

/// An inline table of strings. `None` if it is empty.
fn entries(
    key: &str,
    table: &OrderedValue,
    mut written: impl FnMut(&str, &str) -> String,
) -> Option<String> {
    let entries: Vec<String> = table
        .members()
        .iter()
        .filter_map(|(key, value)| Some((key, scalar_text(value)?)))
        .map(|(key, value)| format!("{} = {}", quoted(key), quoted(&written(key, &value))))
        .collect();
    (!entries.is_empty()).then(|| format!("{key} = {{ {} }}", entries.join(", ")))
}

/// A string, or a number or boolean as a string, since environment variables are strings.
fn scalar_text(value: &OrderedValue) -> Option<String> {
    match value {
        OrderedValue::Leaf(Value::String(text)) => Some(text.clone()),
        OrderedValue::Leaf(value @ (Value::Number(_) | Value::Bool(_))) => Some(value.to_string()),
        _ => None,
    }
}

/// A basic string of TOML. TOML reads the escapes of JSON, and one more character needs an escape.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn written(server: &Value) -> (Option<String>, Vec<String>) {
        let mut secrets = ExtractedSecrets::default();
        (table("srv", &server.clone().into(), &mut secrets), secrets.notes())
    }

    #[test]
    fn a_program_keeps_its_arguments() {
        let server = json!({
            "type": "stdio", "command": "npx", "args": ["-y", "a b \"c\"", 5],
            "env": {"PORT": 80}, "cwd": "data", "disabled": true
        });
        let expected = "\
[upstreams.srv]
command = [\"npx\", \"-y\", \"a b \\\"c\\\"\", \"5\"]
cwd = \"data\"
env = { \"PORT\" = \"80\" }
enabled = false
";
        assert_eq!(written(&server), (Some(expected.to_owned()), vec![]));
    }

    #[test]
    fn an_address_keeps_its_headers() {
        let server = json!({"serverUrl": "https://example.com/mcp", "headers": {"X-Team": "a"}});
        let expected = "\
[upstreams.srv]
url = \"https://example.com/mcp\"
headers = { \"X-Team\" = \"a\" }
";
        assert_eq!(written(&server), (Some(expected.to_owned()), vec![]));
    }

    #[test]
    fn skipped_settings_are_reported() {
        let (table, notes) = written(&json!({"command": "x", "autoApprove": [], "envFile": "e"}));
        assert!(table.is_some());
        assert_eq!(
            notes,
            ["ignored keys of `srv`, which Creole does not support: `autoApprove`, `envFile`"]
        );
        let (table, notes) = written(&json!({"type": "http"}));
        assert_eq!(table, None);
        assert!(notes[0].contains("neither `command` nor `url`"));
    }
}
