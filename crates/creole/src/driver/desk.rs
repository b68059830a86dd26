//! Where the reader and the pump of one connection meet: its state, behind a lock.

use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::connection::Connection;
use crate::server::Service;
use crate::transport::Sink;

/// Bytes that may wait to be served, and that one read takes at most.
pub(super) const CHUNK: usize = 64 * 1024;

/// How long calls may go on after the client has closed its side.
pub(super) const DRAIN: Duration = Duration::from_secs(10);

/// One connection, its output, and what its two parties tell each other.
pub(super) struct Desk<O> {
    state: Mutex<State>,
    output: O,
    /// Wakes the pump: there is something new to wait for.
    news: Notify,
    /// Wakes the reader: more may be read, or nobody listens any more.
    room: Arc<Notify>,
}

struct State {
    connection: Connection,
    backlog: Backlog,
    /// What broke the connection.
    failed: Option<io::Error>,
    /// What the pump waits for.
    pump: Wait,
}

/// What the reader may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Appetite {
    /// Read on.
    Hungry,
    /// Wait for room.
    Full,
    /// End.
    Over,
}

/// What there is to wait for when all that can be done at once is done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait {
    /// For the client to take more.
    pub(super) sending: bool,
    /// For what makes more to send: there is room for it.
    pub(super) room: bool,
    pub(super) deadline: Option<Instant>,
    /// For nothing any more.
    pub(super) over: bool,
}

impl Wait {
    /// Whether somebody who waits for this also waits for `other`.
    fn covers(&self, other: &Self) -> bool {
        let wakes_by = |deadline| self.deadline.is_some_and(|ours| ours <= deadline);
        !other.over && other.sending <= self.sending && other.deadline.is_none_or(wakes_by)
    }
}

impl<O: Sink> Desk<O> {
    pub(super) fn new(service: Service, output: O) -> Self {
        let (connection, backlog) = (Connection::new(service), Backlog::default());
        let state = State { connection, backlog, failed: None, pump: Wait::default() };
        Self { state: Mutex::new(state), output, news: Notify::new(), room: Arc::default() }
    }

    /// What wakes a reader that waits for room.
    pub(super) fn room(&self) -> Arc<Notify> {
        Arc::clone(&self.room)
    }

    pub(super) fn output(&self) -> &O {
        &self.output
    }

    /// Takes what the reader has read, nothing being the end, and answers what it can at once.
    pub(super) fn receive(&self, read: io::Result<&[u8]>) -> Appetite {
        let mut state = self.lock();
        match read {
            Ok([]) => state.end_of_input(),
            Ok(chunk) => state.take(chunk),
            Err(error) => state.failed = Some(error),
        }
        let wait = state.work(&self.output);
        let (covered, appetite) = (state.pump.covers(&wait), state.appetite());
        drop(state);
        if !covered {
            self.news.notify_one();
        }
        appetite
    }

    pub(super) fn appetite(&self) -> Appetite {
        self.lock().appetite()
    }

    /// Ends the connection, because its reader broke down.
    pub(super) fn fail(&self, error: io::Error) {
        self.lock().failed = Some(error);
        self.news.notify_one();
    }

    /// Resolves when the pump is to look again.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Does all that can be done at once, and tells what the pump is to wait for.
    pub(super) fn work(&self) -> io::Result<Wait> {
        let mut state = self.lock();
        let wait = state.work(&self.output);
        state.pump = wait;
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if state.appetite() == Appetite::Hungry {
            self.room.notify_one();
        }
        Ok(wait)
    }

    /// Takes the next report of a call. Cancel-safe.
    pub(super) async fn report(&self) {
        poll_fn(|context| {
            let connection = &mut self.lock().connection;
            let Poll::Ready(report) = connection.poll_report(context) else {
                return Poll::Pending;
            };
            connection.take_report(report);
            Poll::Ready(())
        })
        .await;
    }

    /// Announces what changed.
    pub(super) fn changes(&self) {
        self.lock().connection.take_changes();
    }

    /// Ends what still runs. What is then left to send is all that will ever be.
    pub(super) fn close(&self) {
        self.lock().connection.close();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Whoever broke down while holding it also ends the connection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> Drop for Desk<O> {
    fn drop(&mut self) {
        self.room.notify_one();
    }
}

impl State {
    fn take(&mut self, chunk: &[u8]) {
        let waits = self.backlog.is_waiting();
        let served = if waits { 0 } else { self.connection.take_bytes(chunk) };
        self.backlog.bytes.extend_from_slice(&chunk[served..]);
    }

    fn end_of_input(&mut self) {
        self.backlog.ended = true;
        self.connection.begin_drain(DRAIN);
    }

    fn appetite(&self) -> Appetite {
        if self.backlog.ended || self.failed.is_some() {
            Appetite::Over
        } else if self.backlog.is_full() {
            Appetite::Full
        } else {
            Appetite::Hungry
        }
    }

    /// Serves and sends as far as it goes without waiting.
    fn work(&mut self, output: &impl Sink) -> Wait {
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
        self.wait()
    }

    fn wait(&self) -> Wait {
        let connection = &self.connection;
        let answered = self.backlog.is_over() && connection.is_idle();
        Wait {
            sending: !connection.unsent().is_empty(),
            room: connection.has_room(),
            deadline: connection.deadline(),
            over: answered || connection.is_drained() || self.failed.is_some(),
        }
    }
}

/// Bytes that were read and wait until there is room for their answers. Reading goes on for a little while
/// they do, so that the end of the input is noticed.
#[derive(Default)]
struct Backlog {
    bytes: Vec<u8>,
    served: usize,
    ended: bool,
    told: bool,
}

impl Backlog {
    /// Serves what there is room for.
    fn serve(&mut self, connection: &mut Connection) {
        if self.is_waiting() {
            self.served += connection.take_bytes(&self.bytes[self.served..]);
        }
        if !self.is_waiting() || self.served >= CHUNK {
            // What was served goes, also when a slow client always leaves something waiting.
            self.bytes.drain(..self.served);
            self.served = 0;
        }
        if self.ended && !self.is_waiting() && !self.told {
            connection.end_of_input();
            self.told = true;
        }
    }

    fn is_waiting(&self) -> bool {
        self.served < self.bytes.len()
    }

    fn is_full(&self) -> bool {
        self.bytes.len() - self.served >= CHUNK
    }

    /// Whether nothing more will come.
    fn is_over(&self) -> bool {
        self.told
    }
}
