//! The state of one connection behind a lock, shared by its reader and its background party.

use crate::sync::Mutex;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::serve::lines::connection::StreamConnection;
use crate::server::Service;
use crate::stream::ByteSink;

/// Maximum size of one read, and of the input that waits to be served.
pub(crate) const CHUNK: usize = 64 * 1024;

/// How long calls may continue after the client has closed its side.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// One connection, its output, and the signals between its two parties.
pub(crate) struct SharedConnection<O> {
    state: Mutex<SharedState>,
    output: O,
    /// Wakes the background party: its wait condition has changed.
    work_available: Notify,
    /// Wakes the reader: more may be read, or the connection has ended.
    read_room: Arc<Notify>,
}

struct SharedState {
    connection: StreamConnection,
    backlog: InputBacklog,
    /// The error that broke the connection.
    failed: Option<io::Error>,
    /// The wait condition of the background party.
    background: BackgroundWait,
}

/// The next step of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// Read more.
    Ready,
    /// Wait for room.
    Backpressure,
    /// End.
    Closed,
}

/// The wait condition after all ready work is done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackgroundWait {
    /// For the client to take more output.
    pub(crate) sending: bool,
    /// For events that produce output: there is room for it.
    pub(crate) room: bool,
    pub(crate) deadline: Option<Instant>,
    /// Nothing; the connection is over.
    pub(crate) is_over: bool,
}

impl BackgroundWait {
    /// Whether a wait for this also waits for `other`.
    fn covers(&self, other: &Self) -> bool {
        let wakes_by = |deadline| self.deadline.is_some_and(|ours| ours <= deadline);
        !other.is_over && other.sending <= self.sending && other.deadline.is_none_or(wakes_by)
    }
}

impl<O: ByteSink> SharedConnection<O> {
    pub(crate) fn new(service: Service, output: O) -> Self {
        let (connection, backlog) = (StreamConnection::new(service), InputBacklog::default());
        let state = SharedState {
            connection,
            backlog,
            failed: None,
            background: BackgroundWait::default(),
        };
        Self {
            state: Mutex::new(state),
            output,
            work_available: Notify::new(),
            read_room: Arc::default(),
        }
    }

    /// Wakes a reader that waits for room.
    pub(crate) fn read_room(&self) -> Arc<Notify> {
        Arc::clone(&self.read_room)
    }

    pub(crate) fn output(&self) -> &O {
        &self.output
    }

    /// Takes input from the reader (empty at the end), and sends the responses that are ready at once.
    pub(crate) fn receive(&self, read: io::Result<&[u8]>) -> ReadState {
        let mut state = self.lock();
        match read {
            Ok([]) => state.end_of_input(),
            Ok(chunk) => state.take(chunk),
            Err(error) => state.failed = Some(error),
        }
        let wait = state.run_ready(&self.output);
        let (covered, appetite) = (state.background.covers(&wait), state.read_state());
        drop(state);
        if !covered {
            self.work_available.notify_one();
        }
        appetite
    }

    pub(crate) fn read_state(&self) -> ReadState {
        self.lock().read_state()
    }

    /// Ends the connection, because its reader failed.
    pub(crate) fn fail(&self, error: io::Error) {
        self.lock().failed = Some(error);
        self.work_available.notify_one();
    }

    /// Resolves when the background party must check again.
    pub(crate) async fn wait_for_work(&self) {
        self.work_available.notified().await;
    }

    /// Performs all ready work, and returns the wait condition of the background party.
    pub(crate) fn run_ready(&self) -> io::Result<BackgroundWait> {
        let mut state = self.lock();
        let wait = state.run_ready(&self.output);
        state.background = wait;
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if state.read_state() == ReadState::Ready {
            self.read_room.notify_one();
        }
        Ok(wait)
    }

    /// Takes the next report of a call. Cancel-safe.
    pub(crate) async fn take_report(&self) {
        poll_fn(|context| {
            let connection = &mut self.lock().connection;
            let Poll::Ready(report) = connection.poll_report(context) else {
                return Poll::Pending;
            };
            connection.handle_report(report);
            Poll::Ready(())
        })
        .await;
    }

    /// Announces changes.
    pub(crate) fn announce_changes(&self) {
        self.lock().connection.announce_changes();
    }

    /// Ends running calls. No further output is produced after this.
    pub(crate) fn close(&self) {
        self.lock().connection.close();
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // A panic while the lock is held also ends the connection.
        self.state.lock()
    }
}

impl<O> Drop for SharedConnection<O> {
    fn drop(&mut self) {
        self.read_room.notify_one();
    }
}

impl SharedState {
    fn take(&mut self, chunk: &[u8]) {
        let waits = self.backlog.is_waiting();
        let served = if waits { 0 } else { self.connection.take_bytes(chunk) };
        self.backlog.bytes.extend_from_slice(&chunk[served..]);
    }

    fn end_of_input(&mut self) {
        self.backlog.ended = true;
        self.connection.begin_drain(DRAIN);
    }

    fn read_state(&self) -> ReadState {
        if self.backlog.ended || self.failed.is_some() {
            ReadState::Closed
        } else if self.backlog.is_full() {
            ReadState::Backpressure
        } else {
            ReadState::Ready
        }
    }

    /// Serves and sends as much as possible without waiting.
    fn run_ready(&mut self, output: &impl ByteSink) -> BackgroundWait {
        if self.connection.deadline().is_some_and(|deadline| deadline <= Instant::now()) {
            self.connection.tick();
        }
        loop {
            self.backlog.serve(&mut self.connection);
            if let Err(error) = self.connection.send(output) {
                self.failed = Some(error);
                break;
            }
            if !self.backlog.is_waiting() || !self.connection.has_room() {
                break;
            }
        }
        self.next_wait()
    }

    fn next_wait(&self) -> BackgroundWait {
        let connection = &self.connection;
        let answered = self.backlog.is_over() && connection.is_idle();
        BackgroundWait {
            sending: !connection.unsent().is_empty(),
            room: connection.has_room(),
            deadline: connection.deadline(),
            is_over: answered || connection.is_drained() || self.failed.is_some(),
        }
    }
}

/// Input that waits until there is room for its responses. Reading continues for a little meanwhile, so that the end of
/// the input is noticed.
#[derive(Default)]
struct InputBacklog {
    bytes: Vec<u8>,
    consumed: usize,
    ended: bool,
    is_end_handled: bool,
}

impl InputBacklog {
    /// Serves as much input as there is room for.
    fn serve(&mut self, connection: &mut StreamConnection) {
        if self.is_waiting() {
            self.consumed += connection.take_bytes(&self.bytes[self.consumed..]);
        }
        if !self.is_waiting() || self.consumed >= CHUNK {
            // Served input is dropped even if a slow client always leaves some waiting.
            self.bytes.drain(..self.consumed);
            self.consumed = 0;
        }
        if self.ended && !self.is_waiting() && !self.is_end_handled {
            connection.end_of_input();
            self.is_end_handled = true;
        }
    }

    fn is_waiting(&self) -> bool {
        self.consumed < self.bytes.len()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() - self.consumed >= CHUNK
    }

    /// Whether no more input will arrive.
    fn is_over(&self) -> bool {
        self.is_end_handled
    }
}
