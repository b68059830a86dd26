//! The HTTP endpoint, asked in process: what belongs to whom, what ends when, and what is kept.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "http/client.rs"]
mod client;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/stand_alone.rs"]
mod stand_alone;
