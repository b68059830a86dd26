//! The reader of a connection, on a thread or in a task.

use std::sync::{Arc, Weak};
use std::{io, thread};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::serve::lines::sink::{CHUNK, ReadState};
use crate::stream::ByteSource;
use crate::sync::Mutex;

/// What a reader serves: a connection of lines.
pub(crate) trait InputServer: Send + Sync + 'static {
    /// The source of the input.
    type Input: ByteSource + 'static;

    /// Takes what the reader has read, serves it, and sends the responses that are ready at once. Returns the source of
    /// the input, unless another reader has it now.
    fn receive(
        &self,
        input: Self::Input,
        chunk: &mut Vec<u8>,
        read: io::Result<usize>,
    ) -> Option<(Self::Input, ReadState)>;

    /// Serves what the previous reader has left.
    fn take_over(&self, input: Self::Input) -> Option<(Self::Input, ReadState)>;

    /// Serves what had to wait for room. Must be called within a tokio runtime.
    fn serve_backlog(&self);

    /// What the reader may do next.
    fn read_state(&self) -> ReadState;

    /// Wakes a reader that waits for room.
    fn read_room(&self) -> Arc<Notify>;

    /// Ends the connection, because its reader failed.
    fn fail(&self, error: io::Error);
}

/// Starts the readers of a connection.
pub(crate) enum ReaderStarter {
    /// On threads, for input whose reads block.
    Threads,
    /// In tasks; the latest one is aborted with the connection.
    Tasks(Mutex<Option<AbortHandle>>),
}

impl ReaderStarter {
    pub(crate) fn tasks() -> Self {
        Self::Tasks(Mutex::new(None))
    }

    /// Whether a reader that is in the code of a handler can be replaced. A runtime may keep a task that a handler has
    /// woken behind that handler, so this is promised only for threads of our own.
    pub(crate) fn replaces_readers(&self) -> bool {
        matches!(self, Self::Threads)
    }

    /// Serves what had to wait for room, apart from the background worker, which must never be in the code of a handler.
    /// Must be called within a tokio runtime.
    pub(crate) fn serve_backlog<S: InputServer>(&self, connection: &Arc<S>) {
        let serve = |connection: Arc<S>| async move { connection.serve_backlog() };
        let in_task = serve(Arc::clone(connection));
        if matches!(self, Self::Threads) {
            let (runtime, on_thread) = (Handle::current(), serve(Arc::clone(connection)));
            let thread = thread::Builder::new().name("backlog".into());
            if thread.spawn(move || runtime.block_on(on_thread)).is_ok() {
                return;
            }
        }
        tokio::spawn(in_task);
    }

    /// Starts a reader. Must be called within a tokio runtime.
    ///
    /// A thread is never joined: it may block in a read for ever, and notices at the next one that the connection is
    /// gone.
    ///
    /// # Errors
    /// The input, when no thread can be started.
    pub(crate) fn start<S: InputServer>(
        &self,
        connection: &Arc<S>,
        input: S::Input,
    ) -> Result<(), (S::Input, io::Error)> {
        let (reader, room) = (Arc::downgrade(connection), connection.read_room());
        match self {
            Self::Tasks(latest) => {
                let task = tokio::spawn(read_input(input, reader, room));
                *latest.lock() = Some(task.abort_handle());
                Ok(())
            }
            Self::Threads => {
                let runtime = Handle::current();
                // Shared with the thread, so that a thread that does not start leaves it here.
                let input = Arc::new(Mutex::new(Some(input)));
                let own = Arc::clone(&input);
                let started = thread::Builder::new().name("stdin".into()).spawn(move || {
                    let input = own.lock().take();
                    if let Some(input) = input {
                        // Within the runtime, because calls start here, with the budget of a task.
                        runtime.block_on(read_input(input, reader, room));
                    }
                });
                match (started, input) {
                    (Ok(_), _) => Ok(()),
                    (Err(error), input) => match input.lock().take() {
                        Some(input) => Err((input, error)),
                        None => Ok(()),
                    },
                }
            }
        }
    }

    /// Ends the latest reader, if it is a task.
    pub(crate) fn stop(&self) {
        if let Self::Tasks(latest) = self
            && let Some(task) = latest.lock().take()
        {
            task.abort();
        }
    }
}

/// Passes the client's input to the connection, as long as it exists and no other reader replaces this one.
async fn read_input<S: InputServer>(input: S::Input, connection: Weak<S>, room: Arc<Notify>) {
    let _guard = ReaderGuard(connection.clone());
    let mut chunk = Vec::new();
    let mut next = connection.upgrade().and_then(|connection| connection.take_over(input));
    while let Some((mut input, mut read_state)) = next {
        while read_state == ReadState::Backpressure {
            room.notified().await;
            let connection = connection.upgrade();
            read_state = connection.map_or(ReadState::Closed, |connection| connection.read_state());
        }
        if read_state == ReadState::Closed {
            return;
        }
        chunk.clear();
        let read = input.read(&mut chunk, CHUNK).await;
        let connection = connection.upgrade();
        next = connection.and_then(|connection| connection.receive(input, &mut chunk, read));
    }
}

/// Ends the connection when its reader panics, which nothing else would notice.
struct ReaderGuard<S: InputServer>(Weak<S>);

impl<S: InputServer> Drop for ReaderGuard<S> {
    fn drop(&mut self) {
        if thread::panicking()
            && let Some(connection) = self.0.upgrade()
        {
            connection.fail(io::Error::other("the reader of the input panicked"));
        }
    }
}
