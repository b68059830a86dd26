//! Where the reader and the pump of one connection meet: its state, behind a lock.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::serve::lines::connection::StreamConnection;
use crate::server::Service;
use crate::stream::ByteSink;

/// Bytes that may wait to be served, and that one read takes at most.
pub(crate) const CHUNK: usize = 64 * 1024;

/// How long calls may go on after the client has closed its side.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// One connection, its output, and what its two parties tell each other.
pub(crate) struct SharedConnection<O> {
    state: Mutex<SharedState>,
    output: O,
    /// Wakes the pump: there is something new to wait for.
    work_available: Notify,
    /// Wakes the reader: more may be read, or nobody listens any more.
    read_room: Arc<Notify>,
}

struct SharedState {
    connection: StreamConnection,
    backlog: InputBacklog,
    /// What broke the connection.
    failed: Option<io::Error>,
    /// What the pump waits for.
    background: BackgroundWait,
}

/// What the reader may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// Read on.
    Ready,
    /// Wait for room.
    Backpressure,
    /// End.
    Closed,
}

/// What there is to wait for when all that can be done at once is done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackgroundWait {
    /// For the client to take more.
    pub(crate) sending: bool,
    /// For what makes more to send: there is room for it.
    pub(crate) room: bool,
    pub(crate) deadline: Option<Instant>,
    /// For nothing any more.
    pub(crate) is_over: bool,
}

impl BackgroundWait {
    /// Whether somebody who waits for this also waits for `other`.
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

    /// What wakes a reader that waits for room.
    pub(crate) fn read_room(&self) -> Arc<Notify> {
        Arc::clone(&self.read_room)
    }

    pub(crate) fn output(&self) -> &O {
        &self.output
    }

    /// Takes what the reader has read, nothing being the end, and answers what it can at once.
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

    /// Ends the connection, because its reader broke down.
    pub(crate) fn fail(&self, error: io::Error) {
        self.lock().failed = Some(error);
        self.work_available.notify_one();
    }

    /// Resolves when the pump is to look again.
    pub(crate) async fn wait_for_work(&self) {
        self.work_available.notified().await;
    }

    /// Does all that can be done at once, and tells what the pump is to wait for.
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

    /// Announces what changed.
    pub(crate) fn announce_changes(&self) {
        self.lock().connection.announce_changes();
    }

    /// Ends what still runs. What is then left to send is all that will ever be.
    pub(crate) fn close(&self) {
        self.lock().connection.close();
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        // Whoever broke down while holding it also ends the connection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Serves and sends as far as it goes without waiting.
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

/// Bytes that were read and wait until there is room for their answers. Reading goes on for a little while
/// they do, so that the end of the input is noticed.
#[derive(Default)]
struct InputBacklog {
    bytes: Vec<u8>,
    consumed: usize,
    ended: bool,
    is_end_handled: bool,
}

impl InputBacklog {
    /// Serves what there is room for.
    fn serve(&mut self, connection: &mut StreamConnection) {
        if self.is_waiting() {
            self.consumed += connection.take_bytes(&self.bytes[self.consumed..]);
        }
        if !self.is_waiting() || self.consumed >= CHUNK {
            // What was served goes, also when a slow client always leaves something waiting.
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

    /// Whether nothing more will come.
    fn is_over(&self) -> bool {
        self.is_end_handled
    }
}
