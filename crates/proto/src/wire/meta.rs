//! The `_meta` keys that the protocol reserves (2026-07-28 basic, `_meta`).

/// The protocol version of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The client's `Implementation`.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The client's capabilities.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The minimum level of log messages for a request (2026-07-28 server/utilities/logging, per-request log level).
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The listen request that a notification belongs to
/// (2026-07-28 basic/patterns/subscriptions, receiving notifications).
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The server's `Implementation`.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The token for progress notifications about a request (2025-11-25 schema, `ProgressToken`).
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The task that a message belongs to (2025-11-25 schema, `RelatedTaskMetadata`).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The prefix of the protocol's keys.
pub const PREFIX: &str = "io.modelcontextprotocol/";

/// Whether the key concerns one client and one server only, so that it must not be forwarded.
pub fn is_reserved(key: &str) -> bool {
    key == PROGRESS_TOKEN || key.starts_with(PREFIX)
}
