//! The names of attributes, which are those of OpenTelemetry's conventions for MCP: semantic-conventions-genai,
//! docs/gen-ai/mcp.md, status Development, read in November 2026. Names that begin with `creole.` are our own.

/// The schema of the conventions that the messages follow.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.0";

pub(crate) const METHOD: &str = "mcp.method.name";
pub(crate) const PROTOCOL_VERSION: &str = "mcp.protocol.version";
pub(crate) const SESSION_ID: &str = "mcp.session.id";
pub(crate) const RESOURCE_URI: &str = "mcp.resource.uri";
pub(crate) const TOOL: &str = "gen_ai.tool.name";
pub(crate) const PROMPT: &str = "gen_ai.prompt.name";
pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const RESULT: &str = "gen_ai.tool.call.result";
pub(crate) const REQUEST_ID: &str = "jsonrpc.request.id";
pub(crate) const STATUS_CODE: &str = "rpc.response.status_code";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const NETWORK_TRANSPORT: &str = "network.transport";
pub(crate) const NETWORK_PROTOCOL: &str = "network.protocol.name";
pub(crate) const NETWORK_VERSION: &str = "network.protocol.version";
pub(crate) const CLIENT_ADDRESS: &str = "client.address";
pub(crate) const SERVER_ADDRESS: &str = "server.address";
pub(crate) const SERVER_PORT: &str = "server.port";

pub(crate) const SERVER: &str = "creole.server";
pub(crate) const ERA: &str = "creole.era";
pub(crate) const PRINCIPAL: &str = "creole.principal";
pub(crate) const VIA: &str = "creole.via";
pub(crate) const OUTCOME: &str = "creole.outcome";
pub(crate) const DENIED_BY: &str = "creole.denied_by";
pub(crate) const LAYER: &str = "creole.layer";
pub(crate) const DECISION: &str = "creole.decision";
pub(crate) const ATTEMPT: &str = "creole.attempt";
pub(crate) const UPSTREAM: &str = "creole.upstream";
pub(crate) const TRANSLATION: &str = "creole.translation";
pub(crate) const ROUND: &str = "creole.round";
pub(crate) const PARKED_END: &str = "creole.parked.end";

/// The value of [`OPERATION`] for the call of a tool.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
