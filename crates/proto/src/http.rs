//! HTTP's rules as pure functions: who may speak to a server, what the bytes of a connection may look like,
//! whose conversation a request belongs to, what its headers must say, and which status an answer has. Drivers
//! only move bytes.

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

/// The status of an answer: what it tells, in a conversation with these rules.
pub fn response_status(fault: Option<FaultKind>, rules: &Rules) -> u16 {
    let Some(kind) = fault else { return 200 };
    let row = rules.http_statuses.iter().find(|(listed, _)| *listed == kind);
    row.map_or(200, |(_, status)| *status)
}
