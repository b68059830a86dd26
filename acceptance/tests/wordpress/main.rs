//! Tests of the preset `buddyboss` in front of a site: a mock for site faults, and a real WordPress.
//!
//! A WordPress that cannot be prepared is reported on stderr and skipped. With `CI=true` that is a failure.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod check;
mod clients;
mod every_tool;
mod faults;
mod mock;
mod real;
mod routes;
mod stage;
mod transcripts;
