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

/// How long a test waits for what must happen: only a server that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(180);

const MEBIBYTE: u64 = 1 << 20;

/// Descriptors that a process needs beside its connections.
const SPARE: u64 = 600;

static TURN: Mutex<()> = Mutex::const_new(());

/// Lets one test after the other have the machine, and the descriptors of the process, for itself.
async fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().await
}

/// As many of the wanted connections as the system lets a process have; tells when that is fewer.
fn affordable(wanted: u64) -> u64 {
    let most = creole_acceptance::load::descriptors().saturating_sub(SPARE);
    if most < wanted {
        println!("only {most} connections instead of {wanted}: the limit of open files is too low");
    }
    wanted.min(most)
}
