//! Reads addresses that the user copies to stdin, and stops reading when no login waits for one any more.

use std::io;
use std::io::{BufRead, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::task;

use crate::output;

/// The maximum length of a line.
const MAX_LINE: u64 = 64 * 1024;

/// How often a waiting reader looks whether it is still wanted.
#[cfg(unix)]
const LOOK_NANOSECONDS: i64 = 200_000_000;

/// Lines of stdin.
#[derive(Debug, Default)]
pub(super) struct CopiedAddresses {
    is_over: Arc<AtomicBool>,
}

impl CopiedAddresses {
    /// The next line; `None` at the end of the input.
    pub(super) async fn next(&self) -> Option<String> {
        if io::stdin().is_terminal() {
            output::prompt("Redirect address: ");
        }
        let is_over = Arc::clone(&self.is_over);
        task::spawn_blocking(move || read_line(&is_over)).await.ok().flatten()
    }
}

impl Drop for CopiedAddresses {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

fn read_line(is_over: &AtomicBool) -> Option<String> {
    // The lines of a pipe arrive together, and a buffered line does not show in a poll.
    if io::stdin().is_terminal() && !wait_for_input(is_over) {
        return None;
    }
    let mut line = String::new();
    match io::stdin().lock().take(MAX_LINE).read_line(&mut line) {
        Ok(1..) => Some(line.trim().to_owned()),
        _ => None,
    }
}

/// Waits until stdin has input. The line belongs to another question if this one was answered meanwhile.
#[cfg(unix)]
fn wait_for_input(is_over: &AtomicBool) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let stdin = io::stdin();
    let pause = Timespec { tv_sec: 0, tv_nsec: LOOK_NANOSECONDS };
    while !is_over.load(Ordering::Relaxed) {
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&pause)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            _ => return true,
        }
    }
    false
}

#[cfg(not(unix))]
fn wait_for_input(_is_over: &AtomicBool) -> bool {
    true
}
