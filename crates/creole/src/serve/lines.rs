//! Connects a protocol machine to a pair of byte streams and performs its actions.
//!
//! Two parties serve a connection and share its state behind a lock. The reader takes the client's input and sends the
//! responses that are ready at once. The background party does the rest: calls that had to wait, changes, deadlines,
//! space in a full output, the end. Mostly both are one task. Standard input gets a thread instead, which blocks in the
//! read itself: a quick call then costs a read and a write, and wakes no runtime.

mod background;
mod connection;
mod shared;

use std::sync::{Arc, Weak};
use std::{io, thread};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::server::Service;
use crate::stream::{ByteSink, ByteSource};
use background::run_background;
use shared::{CHUNK, ReadState, SharedConnection};

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// The client closed its side; all its requests have their responses or were cancelled.
    InputClosed,
    /// The client no longer reads.
    OutputBroken,
}

/// Serves one connection until it ends.
pub(crate) async fn serve(
    service: Service,
    input: impl ByteSource,
    output: impl ByteSink,
) -> io::Result<EndReason> {
    let changes = service.registry().changes();
    let desk = Arc::new(SharedConnection::new(service, output));
    let reading = read_input(input, Arc::downgrade(&desk), desk.read_room());
    let mut pumping = std::pin::pin!(run_background(&desk, changes));
    tokio::select! {
        ended = &mut pumping => ended,
        () = reading => pumping.await,
    }
}

/// Serves one connection until it ends; a separate thread reads its input and may block.
///
/// The thread is never joined: it may block in a read forever, and notices at the next one that the connection has
/// ended.
pub(crate) async fn serve_from_thread(
    service: Service,
    input: impl ByteSource + 'static,
    output: impl ByteSink + 'static,
) -> io::Result<EndReason> {
    let changes = service.registry().changes();
    let desk = Arc::new(SharedConnection::new(service, output));
    let (reader, room, runtime) = (Arc::downgrade(&desk), desk.read_room(), Handle::current());
    thread::Builder::new().name("stdin".into()).spawn(move || {
        let _reading = ReaderGuard(reader.clone());
        // Within the runtime, because calls start here, with the budget of a task.
        runtime.block_on(read_input(input, reader, room));
    })?;
    run_background(&desk, changes).await
}

/// The reader: passes the client's input to the connection, as long as it exists.
async fn read_input<O: ByteSink>(
    mut input: impl ByteSource,
    desk: Weak<SharedConnection<O>>,
    room: Arc<Notify>,
) {
    let mut chunk = Vec::new();
    loop {
        chunk.clear();
        let read = input.read(&mut chunk, CHUNK).await;
        let mut appetite = desk.upgrade().map(|desk| desk.receive(read.map(|_| &*chunk)));
        while appetite == Some(ReadState::Backpressure) {
            room.notified().await;
            appetite = desk.upgrade().map(|desk| desk.read_state());
        }
        if appetite != Some(ReadState::Ready) {
            return;
        }
    }
}

/// Ends the connection when its reader panics on its thread, which nothing else would notice.
struct ReaderGuard<O: ByteSink>(Weak<SharedConnection<O>>);

impl<O: ByteSink> Drop for ReaderGuard<O> {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(desk) = self.0.upgrade()
        {
            desk.fail(io::Error::other("the thread that reads the input panicked"));
        }
    }
}

#[cfg(test)]
mod tests;
