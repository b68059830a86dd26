//! The keys of `_meta` that the protocol reserves.

/// The protocol version of a request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client says it is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can be asked for.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The least serious log messages that a request wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The listen request that a notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// Who the server says it is.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The token that progress of a request is reported under.
pub const PROGRESS_TOKEN: &str = "progressToken";
/// The task that a message belongs to.
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// What the keys of the protocol begin with.
pub const PREFIX: &str = "io.modelcontextprotocol/";

/// Whether the protocol gives this key a meaning between one client and one server, so that it must not be
/// passed on to another.
pub fn is_reserved(key: &str) -> bool {
    key == PROGRESS_TOKEN || key.starts_with(PREFIX)
}
