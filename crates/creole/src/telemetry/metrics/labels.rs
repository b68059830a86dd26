//! The labels of metrics, with their names in Prometheus and in OpenTelemetry.

use super::definition::Label;

const fn label(name: &'static str, attribute: &'static str) -> Label {
    Label { name, attribute }
}

pub(super) const SERVER: Label = label("server", "creole.server");
pub(super) const UPSTREAM: Label = label("upstream", "creole.upstream");
pub(super) const METHOD: Label = label("mcp_method_name", "mcp.method.name");
pub(super) const TOOL: Label = label("gen_ai_tool_name", "gen_ai.tool.name");
pub(super) const PROMPT: Label = label("gen_ai_prompt_name", "gen_ai.prompt.name");
pub(super) const PROTOCOL_VERSION: Label = label("mcp_protocol_version", "mcp.protocol.version");
pub(super) const TRANSPORT: Label = label("network_transport", "network.transport");
pub(super) const ERROR_TYPE: Label = label("error_type", "error.type");
pub(super) const LISTENER: Label = label("listener", "creole.listener");
pub(super) const HTTP_VERSION: Label = label("http_version", "network.protocol.version");
pub(super) const STATUS_CODE: Label = label("code", "http.response.status_code");
pub(super) const REASON: Label = label("reason", "creole.reason");
pub(super) const LAYER: Label = label("layer", "creole.layer");
pub(super) const DECISION: Label = label("decision", "creole.decision");
pub(super) const STATE: Label = label("state", "creole.state");
pub(super) const ERA: Label = label("era", "creole.era");
pub(super) const VERSION: Label = label("version", "creole.version");
pub(super) const UPSTREAM_TRANSPORT: Label = label("transport", "creole.transport");
pub(super) const OUTCOME: Label = label("outcome", "creole.outcome");
pub(super) const USE: Label = label("use", "creole.use");
pub(super) const KIND: Label = label("kind", "creole.kind");
pub(super) const FROM_ERA: Label = label("from_era", "creole.from_era");
pub(super) const TO_ERA: Label = label("to_era", "creole.to_era");
pub(super) const HOW: Label = label("how", "creole.translation");
pub(super) const END: Label = label("end", "creole.parked.end");
pub(super) const STATUS: Label = label("status", "creole.task.status");
pub(super) const AUTH_METHOD: Label = label("method", "creole.auth.method");
pub(super) const VERB: Label = label("verb", "creole.state.verb");
pub(super) const TARGET: Label = label("target", "creole.replica.target");
pub(super) const SIGNAL: Label = label("signal", "creole.signal");
pub(super) const METRIC_NAME: Label = label("name", "creole.metric.name");
pub(super) const REVISION: Label = label("revision", "creole.revision");
pub(super) const BUILD_TARGET: Label = label("target", "creole.target");
pub(super) const FEATURES: Label = label("features", "creole.features");
