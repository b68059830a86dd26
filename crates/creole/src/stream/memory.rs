//! A connection within the process, for tests and embedded servers.

use std::io;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::stream::{ByteSink, ByteSource};

/// Maximum number of unread chunks.
const MAX_CHUNKS: usize = 64;

/// One end of a connection within the process.
#[derive(Debug)]
pub struct MemoryConnection {
    sender: Option<mpsc::Sender<Vec<u8>>>,
    receiver: mpsc::Receiver<Vec<u8>>,
}

/// A pair of connected ends.
pub fn memory_pair() -> (MemoryConnection, MemoryConnection) {
    let (near, far_receiver) = mpsc::channel(MAX_CHUNKS);
    let (far, near_receiver) = mpsc::channel(MAX_CHUNKS);
    (
        MemoryConnection { sender: Some(near), receiver: near_receiver },
        MemoryConnection { sender: Some(far), receiver: far_receiver },
    )
}

impl MemoryConnection {
    /// Sends bytes; waits while the other end is slow.
    pub async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sender = self.sender.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        sender.send(bytes.to_vec()).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// The next bytes; `None` at the end.
    pub async fn receive(&mut self) -> Option<Vec<u8>> {
        self.receiver.recv().await
    }

    /// Ends this direction; the other one stays open.
    pub fn close(&mut self) {
        self.sender = None;
    }

    /// The two directions apart.
    pub fn split(self) -> (MemorySource, MemorySink) {
        let source = MemorySource { receiver: self.receiver, rest: Bytes::new() };
        (source, MemorySink { sender: self.sender })
    }
}

/// The reading half.
#[derive(Debug)]
pub struct MemorySource {
    receiver: mpsc::Receiver<Vec<u8>>,
    /// The rest of a chunk that did not fit into one read.
    rest: Bytes,
}

/// The writing half.
#[derive(Debug)]
pub struct MemorySink {
    sender: Option<mpsc::Sender<Vec<u8>>>,
}

impl ByteSource for MemorySource {
    async fn read(&mut self, buffer: &mut Vec<u8>, max: usize) -> io::Result<usize> {
        if self.rest.is_empty() {
            self.rest = self.receiver.recv().await.unwrap_or_default().into();
        }
        let chunk = self.rest.split_to(self.rest.len().min(max));
        buffer.extend_from_slice(&chunk);
        Ok(chunk.len())
    }
}

impl ByteSink for MemorySink {
    fn try_write(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let sender = self.sender.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        match sender.try_send(bytes.to_vec()) {
            Ok(()) => Ok(Some(bytes.len())),
            Err(mpsc::error::TrySendError::Full(_)) => Ok(None),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn writable(&self) -> io::Result<()> {
        let sender = self.sender.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
        sender.reserve().await.map(drop).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    async fn closed(&self) {
        if let Some(sender) = &self.sender {
            sender.closed().await;
        }
    }
}
