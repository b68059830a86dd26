//! Tests of connections to real servers: children, HTTP endpoints and servers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "client/children.rs"]
mod children;
#[path = "client/conversation.rs"]
mod conversation;
#[path = "client/dialing.rs"]
mod dialing;
#[path = "client/encrypted.rs"]
mod encrypted;
#[path = "client/hearing.rs"]
mod hearing;
#[path = "client/http.rs"]
mod http;
#[path = "client/memory.rs"]
mod memory;
#[path = "client/mending.rs"]
mod mending;
#[path = "client/orphans.rs"]
mod orphans;
#[path = "client/proxies.rs"]
mod proxies;
#[path = "client/scripted.rs"]
mod scripted;
#[path = "client/support.rs"]
mod support;
