//! Tests of a client machine connected to a server machine: every operation in every revision.

#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

#[path = "client/asking.rs"]
mod asking;
#[path = "client/laws.rs"]
mod laws;
#[path = "client/pair.rs"]
mod pair;
#[path = "client/plain.rs"]
mod plain;
#[path = "client/relay.rs"]
mod relay;
#[path = "client/sampling.rs"]
mod sampling;
