//! The items of each server that exercise each feature.

use creole_acceptance::peers::UpstreamServer;
use serde_json::{Value, json};

use super::run_result::Feature;

/// A tool that exercises a feature.
pub(super) struct FeatureTool {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    /// A part of its result's text.
    pub(super) text_part: String,
}

fn feature_tool(tool: &'static str, arguments: Value, text_part: &str) -> Option<FeatureTool> {
    Some(FeatureTool { tool, arguments, text_part: text_part.to_owned() })
}

const GREETING: &str = "Gr\u{fc}\u{df}e, \u{4e16}\u{754c}";

/// The tool of a server that exercises a feature, or `None` if the server lacks the feature. A cancelled tool creates
/// the file.
pub(super) fn tool_for(
    server: UpstreamServer,
    feature: Feature,
    file: &str,
) -> Option<FeatureTool> {
    match server {
        UpstreamServer::Everything => everything(feature),
        UpstreamServer::Filesystem => filesystem(feature),
        _ => shared_tools(feature, file),
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
fn shared_tools(feature: Feature, file: &str) -> Option<FeatureTool> {
    match feature {
        Feature::Call => feature_tool("echo", json!({"text": GREETING}), GREETING),
        Feature::Structured => feature_tool("weather", json!({}), ""),
        Feature::Progress => feature_tool("count", json!({}), "counted"),
        Feature::Cancel => feature_tool("wait", json!({"file": file}), ""),
        Feature::Elicit => feature_tool("greet", json!({}), "Hello, peer!"),
        Feature::Sample => feature_tool("think", json!({}), "Thought: Sampled by the peer."),
        Feature::Changed => feature_tool("grow", json!({}), ""),
    }
}

/// It does not report a cancelled call, and no call changes its lists.
fn everything(feature: Feature) -> Option<FeatureTool> {
    match feature {
        Feature::Call => feature_tool("echo", json!({"message": GREETING}), GREETING),
        Feature::Structured => {
            feature_tool("get-structured-content", json!({"location": "New York"}), "")
        }
        Feature::Progress => {
            let arguments = json!({"duration": 0.3, "steps": 3});
            feature_tool("trigger-long-running-operation", arguments, "operation completed")
        }
        Feature::Elicit => feature_tool("trigger-elicitation-request", json!({}), "provided"),
        Feature::Sample => {
            let arguments = json!({"prompt": "Think.", "maxTokens": 10});
            feature_tool("trigger-sampling-request", arguments, "Sampled by the peer.")
        }
        Feature::Cancel | Feature::Changed => None,
    }
}

/// It requests roots before its first call, and afterwards only returns results.
fn filesystem(feature: Feature) -> Option<FeatureTool> {
    match feature {
        Feature::Call => {
            let path = UpstreamServer::files().join("package.json");
            feature_tool("read_text_file", json!({"path": path}), "creole-peer-reference")
        }
        Feature::Structured => feature_tool("list_allowed_directories", json!({}), ""),
        _ => None,
    }
}

fn allowed() -> String {
    format!("Allowed directories:\n{}", UpstreamServer::files().display())
}
