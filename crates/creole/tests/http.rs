//! Tests of the HTTP endpoint in process: ownership by principals, ends of calls and sessions, and kept state.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "http/client.rs"]
mod client;
#[path = "http/drain.rs"]
mod drain;
#[path = "http/failing_state.rs"]
mod failing_state;
#[path = "http/formats.rs"]
mod formats;
#[path = "http/principals.rs"]
mod principals;
#[path = "http/records.rs"]
mod records;
#[path = "http/scopes.rs"]
mod scopes;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/stand_alone.rs"]
mod stand_alone;
