//! The rules of MCP over HTTP as pure functions.
//!
//! They check origins, hosts and header syntax, find the session of a request, compare headers with the body, and
//! choose response statuses. Drivers only move bytes.

pub mod event_id;
pub mod forwarded;
pub mod header_value;
pub mod mcp_headers;
pub mod media_type;
pub mod mirrored_header;
pub mod origin_guard;
pub mod request_headers;
pub mod smuggling;

pub use event_id::EventId;
pub use mcp_headers::{McpHeaders, PostKind, check_stateless_request, classify_post};
pub use media_type::{AcceptedMedia, is_json_content_type, parse_accept};
pub use mirrored_header::{MirroredHeader, MirroredHeaderError};
pub use request_headers::{call_headers, request_headers};

use crate::fault::FaultKind;
use crate::revision::Rules;

/// The HTTP status of a response with this fault, or without one, under these rules
/// (2026-07-28 basic/transports/streamable-http, protocol version header and server validation).
pub fn response_status(fault: Option<FaultKind>, rules: &Rules) -> u16 {
    let Some(kind) = fault else { return 200 };
    let row = rules.http_statuses.iter().find(|(listed, _)| *listed == kind);
    row.map_or(200, |(_, status)| *status)
}
