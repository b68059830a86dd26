//! The HTTP endpoint, asked in process: what belongs to whom, what ends when, and what is kept.

#[path = "http/client.rs"]
mod client;
#[path = "http/sessions.rs"]
mod sessions;
#[path = "http/stand_alone.rs"]
mod stand_alone;
