//! Logins over HTTP, with an authorization server in the same process and files that several credentials share.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

#[path = "oauth/authorization_server.rs"]
mod authorization_server;
#[path = "oauth/connections.rs"]
mod connections;
#[path = "oauth/logins.rs"]
mod logins;
#[path = "oauth/refresh.rs"]
mod refresh;
#[path = "oauth/revocation.rs"]
mod revocation;
#[path = "oauth/support.rs"]
mod support;
