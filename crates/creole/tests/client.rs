//! Tests of connections to real servers: children, HTTP endpoints and servers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "client/children.rs"]
mod children;
#[path = "client/conversation.rs"]
mod conversation;
#[cfg(feature = "http")]
#[path = "client/dialing.rs"]
mod dialing;
#[cfg(feature = "http")]
#[path = "client/encrypted.rs"]
mod encrypted;
#[cfg(feature = "http")]
#[path = "client/hearing.rs"]
mod hearing;
#[cfg(feature = "http")]
#[path = "client/http.rs"]
mod http;
#[cfg(feature = "http")]
#[path = "client/memory.rs"]
mod memory;
#[cfg(feature = "http")]
#[path = "client/mending.rs"]
mod mending;
#[path = "client/orphans.rs"]
mod orphans;
#[cfg(feature = "http")]
#[path = "client/proxies.rs"]
mod proxies;
#[cfg(feature = "http")]
#[path = "client/scripted.rs"]
mod scripted;
#[path = "client/support.rs"]
mod support;
