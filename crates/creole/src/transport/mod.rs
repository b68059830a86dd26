//! Transports: each only reads, writes and notices the end.

mod blocking;
pub mod http;
mod memory;
mod pollable;
pub mod stdio;

pub use memory::{Memory, MemorySink, MemorySource, memory};

use std::future::Future;
use std::io;

/// Bytes from a client.
pub trait Source: Send {
    /// Appends at most `most` bytes to the buffer and tells how many; none means the end. Cancel-safe.
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        most: usize,
    ) -> impl Future<Output = io::Result<usize>> + Send;
}

/// Bytes to a client.
pub trait Sink: Send {
    /// Writes what is taken at once; `None` when the client is not ready.
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>>;

    /// Writes some of the bytes and tells how many were taken. Cancel-safe.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send;

    /// Resolves when everything that was taken is where the client can read it.
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Resolves when the client no longer reads.
    fn closed(&mut self) -> impl Future<Output = ()> + Send;
}

impl Source for stdio::Input {
    async fn read(&mut self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        Self::read(self, buffer, most).await
    }
}

impl Sink for stdio::Output {
    fn try_write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        Self::try_write(self, bytes)
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::write(self, bytes).await
    }

    async fn flush(&mut self) -> io::Result<()> {
        Self::flush(self).await
    }

    async fn closed(&mut self) {
        Self::closed(self).await;
    }
}
