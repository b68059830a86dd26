//! The signals that a live table reacts to.

use std::io;

/// What a signal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// The terminal has another size.
    Resize,
    /// The process must end, and the terminal must be restored before.
    End,
}

/// The signals of this process.
#[cfg(unix)]
pub(super) struct Interrupts {
    resized: tokio::signal::unix::Signal,
    terminated: tokio::signal::unix::Signal,
    hung_up: tokio::signal::unix::Signal,
    interrupted: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Interrupts {
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};

        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            terminated: signal(SignalKind::terminate())?,
            hung_up: signal(SignalKind::hangup())?,
            interrupted: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.resized.recv() => Interrupt::Resize,
            _ = self.terminated.recv() => Interrupt::End,
            _ = self.hung_up.recv() => Interrupt::End,
            _ = self.interrupted.recv() => Interrupt::End,
        }
    }
}

/// The signals of this process.
#[cfg(not(unix))]
pub(super) struct Interrupts;

#[cfg(not(unix))]
impl Interrupts {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Interrupt {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Interrupt::End,
            Err(_) => std::future::pending().await,
        }
    }
}
