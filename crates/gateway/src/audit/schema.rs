//! The JSON Schema of lines.

use serde_json::{Value, json};

use crate::audit::line::{VERSION, VIEW_METHOD};

/// The JSON Schema of the lines of an audit log. Later versions of Creole may add members to lines.
pub fn line_schema() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let hex = |digits: usize, description: &str| {
        let pattern = format!("^[0-9a-f]{{{digits}}}$");
        json!({ "type": "string", "pattern": pattern, "description": description })
    };
    let one_of =
        |values: &[&str], description: &str| json!({ "enum": values, "description": description });
    let count =
        |description: &str| json!({ "type": "integer", "minimum": 0, "description": description });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of the audit log of Creole",
        "type": "object",
        "properties": {
            "v": { "const": VERSION, "description": "The version of this schema." },
            "time": {
                "type": "string", "format": "date-time",
                "pattern": "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$",
                "description": "When the call started, in UTC."
            },
            "id": hex(32, "The id of the call. Lines of several logs about one call have the same id."),
            "trace": hex(32, "The trace that the call belongs to, also if it is not sampled."),
            "principal": text("Who called."),
            "auth": one_of(
                &["basic", "key", "jwt", "introspection", "dpop"],
                "How the principal was authenticated."
            ),
            "issuer": text("The configured name of the issuer of the access token."),
            "client": text("The client that the access token was issued to."),
            "scopes": {
                "type": "array", "items": { "type": "string" },
                "description": "The scopes of the access token."
            },
            "token": hex(8, "The first digits of the SHA-256 of the access token."),
            "server": text("The server or upstream whose chain has the log."),
            "replica": text("The process, if several share a state."),
            "session": hex(8, "The first digits of the SHA-256 of the session's name."),
            "era": one_of(&["handshake", "stateless"], "The era of the client's revision."),
            "revision": text("The client's revision of the protocol."),
            "remote": text("The client's address."),
            "via": one_of(
                &["mcp", "console", "rest", "run_code", "cli", "gateway"],
                "Where the call comes from."
            ),
            "method": text(&format!(
                "The method. `{VIEW_METHOD}`: the principal looked at the messages of the call with this id."
            )),
            "target": text("The tool, the prompt or the URI."),
            "arguments": { "description": "The arguments without the redacted parts." },
            "argumentsSha256": hex(64, "The SHA-256 of the canonical JSON of the arguments."),
            "argumentsBytes": count("The size of arguments that are too large to be written."),
            "outcome": one_of(
                &["ok", "error", "fault", "asked", "detached", "cancelled", "started"],
                "How the call ended. `started`: it is about to run, and another line follows."
            ),
            "fault": text("The kind of the fault."),
            "layer": text("The layer that refused the call."),
            "deniedBy": text("The rule of the policy that refused the call."),
            "durationUs": count("How long the call took, in microseconds."),
            "lost": {
                "type": "integer", "minimum": 1,
                "description": "How many lines were lost before this one."
            },
            "writer": hex(16, "The process that wrote the line to stdout or to a collector."),
            "prev": hex(64, "The hash of the line before, or zeros."),
            "hash": hex(64, "The SHA-256 of the line without this member, which is the last one.")
        },
        "required": ["v", "time"],
        "oneOf": [
            { "required": ["id", "principal", "server", "era", "revision", "via", "method", "outcome"] },
            { "required": ["lost"] }
        ],
        "dependentRequired": { "hash": ["prev"], "prev": ["hash"], "fault": ["outcome"] }
    })
}
