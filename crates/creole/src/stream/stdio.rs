//! Byte streams on descriptors: the process's own stdout, and any other pipe, socket or file.
//!
//! tokio's own stdout would add a hop to a thread pool for each message.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::coop::consume_budget;

use crate::stream::blocking::{BlockingInput, BlockingOutput};
use crate::stream::pollable::{Direction, Pollable};

/// A stream of bytes to read.
#[derive(Debug)]
pub struct Input(InputKind);

#[derive(Debug)]
enum InputKind {
    Pollable(AsyncFd<Pollable>),
    Blocking(BlockingInput),
}

impl Input {
    /// Any readable descriptor. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the descriptor cannot be watched, or no thread can be started.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        match Pollable::open(fd, Direction::Read)? {
            Ok(pollable) => watch(pollable, Interest::READABLE).map(InputKind::Pollable).map(Self),
            Err(fd) => BlockingInput::start(File::from(fd)).map(InputKind::Blocking).map(Self),
        }
    }

    /// Appends at most `max` bytes to `buffer` and returns their number; 0 is the end. Cancel-safe.
    ///
    /// Bytes go directly into the spare capacity of `buffer` if that is no more than `max`.
    ///
    /// # Errors
    /// The system's error, such as a reset connection.
    #[doc(hidden)]
    pub async fn read(&mut self, buffer: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        // A flood of input must not starve the other tasks of the thread.
        consume_budget().await;
        match &mut self.0 {
            InputKind::Pollable(fd) => read_pollable(fd, buffer, max).await,
            InputKind::Blocking(input) => input.read(buffer, max).await,
        }
    }
}

async fn read_pollable(
    fd: &AsyncFd<Pollable>,
    buffer: &mut Vec<u8>,
    max: usize,
) -> io::Result<usize> {
    loop {
        let mut guard = fd.readable().await?;
        match guard.try_io(|fd| fd.get_ref().read(buffer, max)) {
            Ok(Ok((read, asked))) => {
                if read < asked {
                    // The stream is drained: go to epoll next, not to a read that would block.
                    guard.clear_ready();
                }
                return Ok(read);
            }
            Ok(Err(error)) => return Err(error),
            Err(_would_block) => {}
        }
    }
}

/// A stream to write bytes to.
#[derive(Debug)]
pub struct Output(OutputKind);

#[derive(Debug)]
enum OutputKind {
    Pollable(PollableOutput),
    Blocking(BlockingOutput),
}

impl Output {
    /// The standard output of this process. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When descriptor 1 cannot be duplicated or watched, or no thread can be started.
    pub fn stdout() -> io::Result<Self> {
        Self::from_fd(crate::stream::stdin::duplicate(rustix::stdio::stdout())?)
    }

    /// Any writable descriptor. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the descriptor cannot be watched, or no thread can be started.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        match Pollable::open(fd, Direction::Write)? {
            Ok(pollable) => PollableOutput::new(pollable).map(OutputKind::Pollable).map(Self),
            Err(fd) => BlockingOutput::start(File::from(fd)).map(OutputKind::Blocking).map(Self),
        }
    }

    /// Waits until the peer accepts bytes, writes as many of `bytes` as it does, and returns their number. Cancel-safe:
    /// nothing was written unless this returned.
    ///
    /// # Errors
    /// The system's error: a broken pipe when the reader has closed.
    #[doc(hidden)]
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            if let Some(written) = self.try_write(bytes)? {
                return Ok(written);
            }
            self.writable().await?;
        }
    }

    /// Writes as much of `bytes` as fits at present; `None` if nothing fits.
    ///
    /// # Errors
    /// The system's error: a broken pipe when the reader has closed.
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match &self.0 {
            _ if bytes.is_empty() => Ok(Some(0)),
            OutputKind::Pollable(writer) => writer.try_write(bytes),
            OutputKind::Blocking(output) => output.try_write(bytes),
        }
    }

    /// Resolves when there is room again, or the reader has closed. Cancel-safe.
    ///
    /// # Errors
    /// When the stream cannot be watched.
    pub(crate) async fn writable(&self) -> io::Result<()> {
        match &self.0 {
            OutputKind::Pollable(writer) => writer.writable().await,
            OutputKind::Blocking(output) => {
                output.writable().await;
                Ok(())
            }
        }
    }

    /// Resolves when the system has all accepted bytes. Needed before the process exits, because a thread writes to a
    /// terminal or file. Cancel-safe.
    ///
    /// # Errors
    /// The system's error for one of those bytes.
    pub(crate) async fn flush(&self) -> io::Result<()> {
        match &self.0 {
            OutputKind::Pollable(_) => Ok(()),
            OutputKind::Blocking(output) => output.flush().await,
        }
    }

    /// Resolves when the reading side has closed, even while nothing is written. Cancel-safe.
    ///
    /// For a terminal or file it never resolves: there only a failing write shows it.
    pub(crate) async fn closed(&self) {
        match &self.0 {
            OutputKind::Pollable(writer) => writer.closed().await,
            OutputKind::Blocking(_) => std::future::pending().await,
        }
    }
}

/// The pollable output, watched only for its end: watching for room as well would wake the process each time the client
/// reads a message from a socket.
#[derive(Debug)]
struct PollableOutput(AsyncFd<Pollable>);

impl PollableOutput {
    fn new(pollable: Pollable) -> io::Result<Self> {
        watch(pollable, Interest::ERROR).map(Self)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        match self.0.get_ref().write(bytes) {
            Ok(written) => Ok(Some(written)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Watches for room until there is some.
    async fn writable(&self) -> io::Result<()> {
        let room = watch(self.0.get_ref().duplicate()?, Interest::WRITABLE)?;
        room.writable().await.map(drop)
    }

    async fn closed(&self) {
        // Room is not watched here, so `WRITABLE` only reports its closed state: the hang-up of a socket. The end of a
        // pipe is an error state. A failure means that the runtime ends.
        let _ = self.0.ready(Interest::ERROR | Interest::WRITABLE).await;
    }
}

/// Registers `fd` with the runtime.
#[expect(
    deprecated,
    reason = "the successor is an unsafe function, for types that may change or close their \
              descriptor; ours own one and never do"
)]
fn watch<T: AsRawFd>(fd: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(fd, interest)
}

#[cfg(test)]
mod tests;
