//! Byte streams under the line transports: each reads, writes and detects the end of its peer.

mod blocking;
mod memory;
mod pollable;
mod stdin;
pub mod stdio;

pub use memory::{MemoryConnection, MemorySink, MemorySource, memory_pair};
pub(crate) use stdin::Stdin;

use std::future::Future;
use std::io;

/// Bytes from a client.
pub trait ByteSource: Send {
    /// Appends at most `most` bytes to the buffer and returns their number; 0 means the end. Cancel-safe.
    fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        max: usize,
    ) -> impl Future<Output = io::Result<usize>> + Send;
}

/// Bytes to a client.
pub trait ByteSink: Send + Sync {
    /// Writes as many bytes as fit without waiting and returns their number; `None` when the client is not ready.
    fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>>;

    /// Resolves when another write makes sense, including when the client has disconnected. Cancel-safe.
    fn writable(&self) -> impl Future<Output = io::Result<()>> + Send;

    /// Resolves when everything that was accepted is where the client can read it.
    fn flush(&self) -> impl Future<Output = io::Result<()>> + Send {
        std::future::ready(Ok(()))
    }

    /// Resolves when the client no longer reads. Cancel-safe.
    fn closed(&self) -> impl Future<Output = ()> + Send;
}

impl ByteSource for stdio::Input {
    async fn read(&mut self, buffer: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        Self::read(self, buffer, max).await
    }
}

impl ByteSink for stdio::Output {
    fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        Self::try_write(self, bytes)
    }

    async fn writable(&self) -> io::Result<()> {
        Self::writable(self).await
    }

    async fn flush(&self) -> io::Result<()> {
        Self::flush(self).await
    }

    async fn closed(&self) {
        Self::closed(self).await;
    }
}
