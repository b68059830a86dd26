//! Event streams: a task writes events, and a silent stream gets a comment so that proxies keep it open.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

/// How many pieces may wait for a slow client.
const QUEUE: usize = 32;
/// How long a stream is silent before a comment.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Writes the events of one stream. Its place among the streams is free when it is dropped.
pub(crate) struct EventWriter {
    pieces: mpsc::Sender<Bytes>,
    next_id: u64,
    _place: OwnedSemaphorePermit,
}

/// The client has closed the stream.
#[derive(Debug)]
pub(crate) struct StreamClosed;

impl EventWriter {
    /// A writer, and the end that the response reads.
    pub(crate) fn new(place: OwnedSemaphorePermit) -> (Self, mpsc::Receiver<Bytes>) {
        let (pieces, read) = mpsc::channel(QUEUE);
        (Self { pieces, next_id: 0, _place: place }, read)
    }

    /// Writes an event. Waits while the client is slow.
    pub(crate) async fn send(
        &mut self,
        name: &str,
        data: &impl Serialize,
    ) -> Result<(), StreamClosed> {
        let data = serde_json::to_string(data).unwrap_or_default();
        let id = self.next_id;
        self.next_id += 1;
        let piece = format!("event: {name}\nid: {id}\ndata: {data}\n\n");
        self.pieces.send(piece.into()).await.map_err(|_| StreamClosed)
    }

    /// Writes a comment, which clients ignore.
    pub(crate) async fn keep_alive(&self) -> Result<(), StreamClosed> {
        self.pieces.send(Bytes::from_static(b": \n\n")).await.map_err(|_| StreamClosed)
    }

    /// Resolves when the client has closed the stream.
    pub(crate) async fn closed(&self) {
        self.pieces.closed().await;
    }
}
