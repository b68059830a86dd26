//! The state of a line connection beside its machine: input that waits to be served, and output that waits to be sent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use creole_proto::framing::{FramedLine, LineDecoder};
use creole_proto::server::Outbox;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use crate::host::{FrameSink, HostState, OpenCalls, StreamKey};
use crate::registry::Announcement;
use crate::serve::lines::turn::ServingTurn;
use crate::server::Service;
use crate::stream::ByteSink;
use crate::telemetry::Modes;
use crate::telemetry::facts::Transport;
use crate::telemetry::frames::CapturedFrame;
use crate::telemetry::request_log;

/// Maximum size of one read, and of the input that waits to be served.
pub(crate) const CHUNK: usize = 64 * 1024;

/// Unread output from which no more requests of a slow client are served and its calls have to wait.
const HIGH_WATER: usize = 256 * 1024;

/// What the reader may do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadState {
    /// Read more.
    Ready,
    /// Wait for room.
    Backpressure,
    /// End.
    Closed,
}

/// What to wait for when everything that can be done at once is done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BackgroundWait {
    /// For the client to take more output.
    pub(crate) sending: bool,
    /// For changes, which produce output: there is room for it.
    pub(crate) room: bool,
    pub(crate) deadline: Option<Instant>,
    /// Nothing; the connection is over.
    pub(crate) is_over: bool,
}

impl BackgroundWait {
    /// Whether a wait for this also waits for `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let wakes_by = |deadline| self.deadline.is_some_and(|ours| ours <= deadline);
        !other.is_over && other.sending <= self.sending && other.deadline.is_none_or(wakes_by)
    }
}

/// The input and output of a connection.
pub(crate) struct LineSink<I> {
    lines: LineDecoder,
    pub(crate) backlog: InputBacklog,
    /// The source of the input, while its reader serves what it has read.
    pub(crate) input: Option<I>,
    pub(crate) turn: ServingTurn,
    pub(crate) changes: broadcast::Receiver<Announcement>,
    /// How many bytes of the outbox the client has taken, and how many were logged.
    sent_bytes: usize,
    logged: usize,
    /// When calls are cancelled after the client has closed its side.
    pub(crate) drain_deadline: Option<Instant>,
    /// The error that broke the connection.
    pub(crate) failed: Option<io::Error>,
    /// Whether nothing serves the connection any more.
    pub(crate) is_closed: bool,
    /// What the background worker waits for.
    pub(crate) background: BackgroundWait,
    /// Wakes the background worker.
    work_available: Arc<Notify>,
}

impl<I: Send + 'static> FrameSink for LineSink<I> {
    // A connection is one process or one program: it keeps its buffers.
    const FREES_BUFFERS: bool = false;
    const HAS_STREAMS: bool = false;
    const TRANSPORT: Transport = Transport::Pipe;

    fn take_frames(&mut self, _: &mut Outbox, _: &OpenCalls, _: StreamKey) {
        // The outbox is the buffer that is written from.
    }

    fn has_room(&self, outbox: &Outbox, _: StreamKey) -> bool {
        self.has_room_in(outbox)
    }

    fn takes_session_message(&self, outbox: &Outbox) -> bool {
        self.has_room_in(outbox)
    }

    fn wake_writer(&self) {
        self.work_available.notify_one();
    }
}

impl<I> LineSink<I> {
    pub(crate) fn new(service: &Service, max_message: usize, work_available: Arc<Notify>) -> Self {
        Self {
            lines: LineDecoder::new(max_message),
            backlog: InputBacklog { is_drained: true, ..InputBacklog::default() },
            input: None,
            turn: ServingTurn::default(),
            changes: service.registry().changes(),
            sent_bytes: 0,
            logged: 0,
            drain_deadline: None,
            failed: None,
            is_closed: false,
            background: BackgroundWait::default(),
            work_available,
        }
    }

    /// Whether more may be done for the client before it has read its output.
    fn has_room_in(&self, outbox: &Outbox) -> bool {
        outbox.bytes().len() - self.sent_bytes < HIGH_WATER
    }

    /// Logs the frames that are about to be sent.
    fn log_unsent(&mut self, outbox: &Outbox) {
        let frames = outbox.bytes()[self.logged..].split(|byte| *byte == b'\n');
        frames
            .filter(|frame| !frame.is_empty())
            .for_each(|frame| request_log::log_payload("sent", frame));
        self.logged = outbox.bytes().len();
    }

    fn mark_sent(&mut self, outbox: &mut Outbox, count: usize) {
        self.sent_bytes += count;
        if self.sent_bytes == outbox.bytes().len() {
            outbox.clear_frames();
            (self.sent_bytes, self.logged) = (0, 0);
        } else if self.sent_bytes >= HIGH_WATER {
            // The sent part is discarded even if the client always lags a little.
            outbox.discard(self.sent_bytes);
            self.logged = self.logged.saturating_sub(self.sent_bytes);
            self.sent_bytes = 0;
        }
    }

    pub(crate) fn read_state(&self) -> ReadState {
        if self.backlog.ended || self.failed.is_some() || self.is_closed {
            ReadState::Closed
        } else if self.backlog.is_full() {
            ReadState::Backpressure
        } else {
            ReadState::Ready
        }
    }
}

impl<I: Send + 'static> HostState<LineSink<I>> {
    /// Whether the client has not taken all output.
    pub(crate) fn has_unsent(&self) -> bool {
        self.outbox.bytes().len() > self.sink.sent_bytes
    }

    pub(crate) fn has_output_room(&self) -> bool {
        self.sink.has_room_in(&self.outbox)
    }

    /// Writes as much as the client takes without waiting: mostly everything, by one system call.
    pub(crate) fn send(&mut self, output: &impl ByteSink, logs_payloads: bool) {
        let Self { outbox, sink, .. } = self;
        if logs_payloads {
            sink.log_unsent(outbox);
        }
        while outbox.bytes().len() > sink.sent_bytes {
            match output.try_write(&outbox.bytes()[sink.sent_bytes..]) {
                Ok(Some(sent)) => sink.mark_sent(outbox, sent),
                Ok(None) => return,
                Err(error) => return sink.failed = Some(error),
            }
        }
    }

    /// Whether there is input to serve, and room for its responses.
    pub(crate) fn needs_serving(&self) -> bool {
        let backlog = &self.sink.backlog;
        match backlog.is_drained {
            true => backlog.ended && !backlog.is_end_handled,
            false => self.has_output_room(),
        }
    }

    /// Passes the next message of the input to the machine, or the end of the input.
    pub(crate) fn pass_message(&mut self, service: &Service, now: Duration) {
        let Self { machine, outbox, sink, received, .. } = self;
        let keeps_frames = service.modes().contains(Modes::FRAMES);
        let LineSink { lines, backlog, .. } = sink;
        let mut receive = |line: FramedLine<'_>| {
            if let FramedLine::Complete(frame) = line
                && service.logs_payloads()
            {
                request_log::log_payload("received", frame);
            }
            if let FramedLine::Complete(frame) = line
                && keeps_frames
            {
                *received = Some(CapturedFrame::text_of(frame));
            }
            machine.receive_line(line, now, outbox);
        };
        if !backlog.is_drained {
            let mut rest = &backlog.bytes[backlog.consumed..];
            let line = lines.next(&mut rest);
            let consumed = backlog.bytes.len() - rest.len();
            backlog.is_drained = match line {
                Some(line) => {
                    receive(line);
                    rest.is_empty() && lines.is_empty()
                }
                None => true,
            };
            backlog.discard(consumed);
        } else if !backlog.is_last_line_taken {
            // A last line without a line end still counts.
            backlog.is_last_line_taken = true;
            if let Some(line) = lines.finish() {
                receive(line);
            }
        } else {
            // No input response will arrive any more.
            backlog.is_end_handled = true;
            machine.handle_end_of_stream(now, outbox);
        }
    }

    /// When a call or the whole connection has been waiting for too long.
    pub(crate) fn deadline(&self, started: Instant) -> Option<Instant> {
        let machine = self.machine.deadline().map(|deadline| started + deadline);
        machine.into_iter().chain(self.sink.drain_deadline).min()
    }

    pub(crate) fn next_wait(&self, started: Instant) -> BackgroundWait {
        let is_answered = self.sink.backlog.is_end_handled && self.machine.in_flight() == 0;
        let is_drained = self.sink.drain_deadline.is_some_and(|end| end <= Instant::now());
        let deadline = self.deadline(started).into_iter().chain(self.sink.turn.next_look()).min();
        BackgroundWait {
            sending: self.has_unsent(),
            room: self.has_output_room(),
            deadline,
            is_over: is_answered || is_drained || self.sink.failed.is_some(),
        }
    }
}

/// Input that waits to be served: while a message is served, or until there is room for its responses. Reading continues
/// for a little meanwhile, so that the end of the input is noticed.
#[derive(Default)]
pub(crate) struct InputBacklog {
    bytes: Vec<u8>,
    consumed: usize,
    /// Whether all complete lines were served.
    is_drained: bool,
    pub(crate) ended: bool,
    is_last_line_taken: bool,
    is_end_handled: bool,
}

impl InputBacklog {
    /// Takes what was read, and leaves an empty chunk. Mostly nothing waits, and the buffers are exchanged.
    pub(crate) fn push(&mut self, chunk: &mut Vec<u8>) {
        match self.bytes.is_empty() {
            true => std::mem::swap(&mut self.bytes, chunk),
            false => self.bytes.append(chunk),
        }
        self.is_drained = false;
    }

    /// Gives the buffer back to the reader, if nothing waits in it.
    pub(crate) fn return_buffer(&mut self, chunk: &mut Vec<u8>) {
        if self.bytes.is_empty() {
            std::mem::swap(&mut self.bytes, chunk);
        }
    }

    /// Served input is dropped even if a slow client always leaves some waiting.
    fn discard(&mut self, consumed: usize) {
        self.consumed = consumed;
        if self.is_drained || self.consumed >= CHUNK {
            self.bytes.drain(..self.consumed);
            self.consumed = 0;
        }
    }

    fn is_full(&self) -> bool {
        self.bytes.len() - self.consumed >= CHUNK
    }
}

#[cfg(test)]
mod tests {
    use super::InputBacklog;

    /// A chunk that went to and fro with its bytes would be served twice.
    #[test]
    fn a_taken_frame_does_not_return_with_the_buffer() {
        let mut backlog = InputBacklog::default();
        for (waiting, taken) in [(&b""[..], 2), (b"1\n", 4)] {
            backlog.push(&mut waiting.to_vec());
            let mut chunk = b"2\n".to_vec();
            backlog.push(&mut chunk);
            assert_eq!((backlog.bytes.len(), chunk.len()), (taken, 0));
            backlog.is_drained = true;
            backlog.discard(taken);
            backlog.return_buffer(&mut chunk);
            assert!(backlog.bytes.is_empty() && chunk.is_empty());
        }
    }
}
