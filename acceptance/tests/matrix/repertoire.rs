//! The items of each server that exercise each feature.

use creole_acceptance::peers::UpstreamServer;
use serde_json::{Value, json};

use super::seen::Feature;

/// A tool that exercises a feature.
pub(super) struct Trick {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    /// A part of its result's text.
    pub(super) says: String,
}

fn trick_of(tool: &'static str, arguments: Value, says: &str) -> Option<Trick> {
    Some(Trick { tool, arguments, says: says.to_owned() })
}

const GREETING: &str = "Gr\u{fc}\u{df}e, \u{4e16}\u{754c}";

/// The tool of a server that exercises a feature, or `None` if the server lacks the feature. A cancelled tool creates
/// the file.
pub(super) fn trick(server: UpstreamServer, feature: Feature, file: &str) -> Option<Trick> {
    match server {
        UpstreamServer::Everything => everything(feature),
        UpstreamServer::Filesystem => filesystem(feature),
        _ => usual(feature, file),
    }
}

/// The structured result of the server's tool.
pub(super) fn data(server: UpstreamServer) -> Value {
    match server {
        UpstreamServer::Everything => {
            json!({"temperature": 33, "conditions": "Cloudy", "humidity": 82})
        }
        UpstreamServer::Filesystem => json!({"content": allowed()}),
        _ => json!({"city": "Berlin", "temperature": 21.5}),
    }
}

/// The tools that our servers and those of the SDKs share.
fn usual(feature: Feature, file: &str) -> Option<Trick> {
    match feature {
        Feature::Call => trick_of("echo", json!({"text": GREETING}), GREETING),
        Feature::Structured => trick_of("weather", json!({}), ""),
        Feature::Progress => trick_of("count", json!({}), "counted"),
        Feature::Cancel => trick_of("wait", json!({"file": file}), ""),
        Feature::Elicit => trick_of("greet", json!({}), "Hello, peer!"),
        Feature::Sample => trick_of("think", json!({}), "Thought: Sampled by the peer."),
        Feature::Changed => trick_of("grow", json!({}), ""),
    }
}

/// It does not report a cancelled call, and no call changes its lists.
fn everything(feature: Feature) -> Option<Trick> {
    match feature {
        Feature::Call => trick_of("echo", json!({"message": GREETING}), GREETING),
        Feature::Structured => {
            trick_of("get-structured-content", json!({"location": "New York"}), "")
        }
        Feature::Progress => {
            let arguments = json!({"duration": 0.3, "steps": 3});
            trick_of("trigger-long-running-operation", arguments, "operation completed")
        }
        Feature::Elicit => trick_of("trigger-elicitation-request", json!({}), "provided"),
        Feature::Sample => {
            let arguments = json!({"prompt": "Think.", "maxTokens": 10});
            trick_of("trigger-sampling-request", arguments, "Sampled by the peer.")
        }
        Feature::Cancel | Feature::Changed => None,
    }
}

/// It requests roots before its first call, and afterwards only returns results.
fn filesystem(feature: Feature) -> Option<Trick> {
    match feature {
        Feature::Call => {
            let path = UpstreamServer::files().join("package.json");
            trick_of("read_text_file", json!({"path": path}), "creole-peer-reference")
        }
        Feature::Structured => trick_of("list_allowed_directories", json!({}), ""),
        _ => None,
    }
}

fn allowed() -> String {
    format!("Allowed directories:\n{}", UpstreamServer::files().display())
}
