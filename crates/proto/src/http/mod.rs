//! HTTP's rules as pure functions: who may speak to a server, what the bytes of a connection may look like,
//! whose conversation a request belongs to, what its headers must say, and which status an answer has. Drivers
//! only move bytes.

pub mod field;
pub mod forwarded;
pub mod guard;
pub mod head;
pub mod media;
pub mod mirror;
pub mod request;
pub mod resume;
pub mod screen;

pub use head::{Conversation, Head, check_alone, conversation};
pub use media::{Accepted, accepted, is_json};
pub use mirror::{Mirror, MirrorError};
pub use request::{call_headers, request_headers};
pub use resume::EventId;

use crate::fault::FaultKind;
use crate::revision::Rules;

/// The status of an answer: what it tells, in a conversation with these rules.
pub fn status(fault: Option<FaultKind>, rules: &Rules) -> u16 {
    let Some(kind) = fault else { return 200 };
    let row = rules.http_statuses.iter().find(|(listed, _)| *listed == kind);
    row.map_or(200, |(_, status)| *status)
}
