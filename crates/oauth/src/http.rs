//! Requests to other servers, and the documents in their responses.

pub mod document;
pub mod exchange;
