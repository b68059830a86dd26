//! Tests of the binary under load over HTTP: no client gets another client's response, and slow, numerous or vanished
//! clients do not affect others.
//!
//! Each test prints its figures for information. No test fails because a machine is slow.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
#![allow(clippy::print_stdout, reason = "the figures are read in the output of the tests")]

mod checker;
mod crowd;
mod dishonest;
mod identities;
mod sessions;
mod slow;
mod streams;

use std::time::Duration;

use tokio::sync::{Mutex, MutexGuard};

/// How long a test waits for an event: only a server that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

const MEBIBYTE: u64 = 1 << 20;

/// The number of descriptors that a process needs besides its connections.
const SPARE: u64 = 600;

static TURN: Mutex<()> = Mutex::const_new(());

/// Runs one test at a time, so that each has the machine and the descriptors of the process for itself.
async fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().await
}

/// The number of connections that the system allows, at most the wanted number. Prints a message if it is lower.
fn affordable(expected: u64) -> u64 {
    let max = creole_acceptance::load::descriptors().saturating_sub(SPARE);
    if max < expected {
        println!(
            "only {max} connections instead of {expected}: the limit of open files is too low"
        );
    }
    expected.min(max)
}
