//! One connection of lines: serves its input, sends its output, and lets neither wait for a handler that computes.

use std::io;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use creole_proto::operation::Outcome;
use creole_proto::server::{CallKey, Machine};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::Instant;

use crate::call::Origin;
use crate::host::{COMMON_STREAM, HostState, HostedCall, MachineHost};
use crate::serve::lines::reader::{InputServer, ReaderStarter};
use crate::serve::lines::sink::{BackgroundWait, LineSink, ReadState};
use crate::serve::lines::turn::ServingTurn;
use crate::server::Service;
use crate::stream::{ByteSink, ByteSource};
use crate::telemetry::metrics::SessionMeter;

/// How long calls may continue after the client has closed its side.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// One connection, its output, and the signals between its workers.
pub(crate) struct LineConnection<I, O> {
    host: Arc<MachineHost<LineSink<I>>>,
    output: O,
    readers: ReaderStarter,
    /// Wakes the background worker: there is something new to wait for.
    work_available: Arc<Notify>,
    /// Wakes the reader: more may be read, or the connection is gone.
    read_room: Arc<Notify>,
}

type Locked<'a, I> = MutexGuard<'a, HostState<LineSink<I>>>;

impl<I: ByteSource + 'static, O: ByteSink + 'static> LineConnection<I, O> {
    pub(crate) fn new(
        service: Service,
        origin: Origin,
        output: O,
        readers: ReaderStarter,
    ) -> Arc<Self> {
        let (profile, work_available) = (service.current_profile(), Arc::<Notify>::default());
        let mut sink =
            LineSink::new(&service, profile.dialect.max_message, Arc::clone(&work_available));
        sink.turn = ServingTurn::new(readers.replaces_readers());
        let host = MachineHost::new(service, origin, Machine::new(profile), sink);
        Arc::new(Self { host, output, readers, work_available, read_room: Arc::default() })
    }

    /// Starts the first reader.
    pub(crate) fn start_reader(self: &Arc<Self>, input: I) -> io::Result<()> {
        self.readers.start(self, input).map_err(|(_, error)| error)
    }

    /// Measures the session of the connection, if there was a handshake.
    pub(crate) fn end_session(&self, meter: SessionMeter) {
        let state = self.host.lock();
        if state.machine.has_begun_handshake() {
            meter.end(state.machine.rules());
        }
    }

    pub(crate) fn output(&self) -> &O {
        &self.output
    }

    fn serve_as_reader(
        &self,
        mut state: Locked<'_, I>,
        input: I,
        chunk: &mut Vec<u8>,
    ) -> Option<(I, ReadState)> {
        state.sink.input = Some(input);
        let (mut state, is_current) = self.serve_input(state);
        // After the end of the turn it belongs to another reader.
        let input = if is_current { state.sink.input.take() } else { None };
        state.sink.backlog.return_buffer(chunk);
        let read_state = state.sink.read_state();
        self.leave(state);
        input.map(|input| (input, read_state))
    }

    /// Wakes the background worker, if it does not wait for everything that is to be waited for now.
    fn leave(&self, state: Locked<'_, I>) {
        let wait = state.next_wait(self.host.started());
        let is_covered = state.sink.background.covers(&wait);
        drop(state);
        if !is_covered {
            self.work_available.notify_one();
        }
    }

    /// Serves and sends as much as possible without waiting. If another worker serves, that worker serves this input too. Returns whether
    /// the turn was not ended meanwhile.
    fn serve_input<'a>(&'a self, mut state: Locked<'a, I>) -> (Locked<'a, I>, bool) {
        if state.sink.turn.is_taken() {
            return (state, true);
        }
        let turn = state.sink.turn.begin();
        loop {
            // Message by message, so that a quick call gets its response before the next message is read.
            while state.sink.turn.is_current(turn) && state.needs_serving() {
                state = self.serve_message(state, turn);
            }
            self.send(&mut state);
            let is_failed = state.sink.failed.is_some();
            if is_failed || !state.sink.turn.is_current(turn) || !state.needs_serving() {
                let is_current = state.sink.turn.end(turn);
                return (state, is_current);
            }
        }
    }

    /// Serves one message. Most calls finish at their first poll; only a call that has to wait becomes a task.
    fn serve_message<'a>(&'a self, mut state: Locked<'a, I>, turn: u64) -> Locked<'a, I> {
        // Changes before a message do not concern the subscriptions that it makes.
        self.announce_changes_locked(&mut state);
        let now = self.host.now();
        state.pass_message(self.host.service(), now);
        let (first, others) =
            self.host.perform_actions(&mut state, now, COMMON_STREAM, None).into_parts();
        if let Some(call) = first {
            state = self.serve_call(state, call, turn);
        }
        if !others.is_empty() {
            for call in others {
                state = self.serve_call(state, call, turn);
            }
        }
        state
    }

    /// Polls a call once, without the lock.
    #[inline]
    fn serve_call<'a>(
        &'a self,
        mut state: Locked<'a, I>,
        call: HostedCall,
        turn: u64,
    ) -> Locked<'a, I> {
        if state.sink.turn.begin_poll(turn) {
            self.work_available.notify_one();
        }
        drop(state);
        let finished = self.poll_call(call);
        state = self.host.lock();
        state.sink.turn.end_poll(turn);
        if let Some((key, outcome)) = finished {
            self.host.finish_locked(&mut state, self.host.now(), key, outcome);
        }
        state
    }

    /// Polls a call and drops it, without the lock: both run code of its handler.
    fn poll_call(&self, mut call: HostedCall) -> Option<(CallKey, Outcome)> {
        match call.poll(&mut Context::from_waker(Waker::noop()))? {
            Poll::Ready(outcome) => Some((call.key, outcome)),
            Poll::Pending => {
                self.host.spawn_call(call);
                None
            }
        }
    }

    fn send(&self, state: &mut HostState<LineSink<I>>) {
        state.send(&self.output, self.host.service().logs_payloads());
        if state.has_output_room() {
            self.host.notify_room(state);
        }
    }

    /// Resolves when the background worker must check again.
    pub(crate) async fn wait_for_work(&self) {
        self.work_available.notified().await;
    }

    /// Does everything that can be done at once, and returns what the background worker waits for.
    pub(crate) fn run_ready(self: &Arc<Self>) -> io::Result<BackgroundWait> {
        let mut state = self.host.lock();
        let started = self.host.started();
        if state.deadline(started).is_some_and(|deadline| deadline <= Instant::now()) {
            self.host.drive_locked(
                &mut state,
                self.host.now(),
                COMMON_STREAM,
                |machine, now, outbox| machine.tick(now, outbox),
            );
        }
        if state.sink.turn.look() {
            self.replace_worker(&mut state);
        }
        self.send(&mut state);
        if state.needs_serving() && !state.sink.turn.is_taken() {
            self.readers.serve_backlog(self);
        }
        let wait = state.next_wait(started);
        state.sink.background = wait;
        if let Some(error) = state.sink.failed.take() {
            return Err(error);
        }
        if state.sink.read_state() == ReadState::Ready {
            self.read_room.notify_one();
        }
        Ok(wait)
    }

    /// Starts another worker for the input, because the present one is in the code of a handler. The handler continues.
    fn replace_worker(self: &Arc<Self>, state: &mut HostState<LineSink<I>>) {
        if !state.sink.turn.may_replace() {
            return;
        }
        tracing::warn!(
            "a handler computes without awaiting and holds a thread; another thread serves the connection; \
             run the computation with tokio::task::spawn_blocking"
        );
        if let Some(input) = state.sink.input.take()
            && let Err((input, error)) = self.readers.start(self, input)
        {
            tracing::warn!(%error, "the connection waits for the handler: no second reader can be started");
            state.sink.input = Some(input);
            return;
        }
        state.sink.turn.replace();
    }

    /// Announces changes.
    pub(crate) fn announce_changes(&self) {
        self.announce_changes_locked(&mut self.host.lock());
    }

    fn announce_changes_locked(&self, state: &mut HostState<LineSink<I>>) {
        while !state.sink.changes.is_empty() {
            let HostState { machine, outbox, sink, .. } = state;
            match sink.changes.try_recv() {
                Ok(announcement) if announcement.to.includes(self.host.origin()) => {
                    machine.announce(&announcement.change, outbox);
                }
                Ok(_) => {}
                // A spurious notification is harmless, a lost one is not.
                Err(TryRecvError::Lagged(_)) => machine.announce_all_lists(outbox),
                Err(_) => return,
            }
        }
    }

    /// Ends running calls. No further output is produced after this.
    pub(crate) fn close(&self) {
        self.host.close();
    }

    /// Cancels calls and ends the reader, when nothing serves the connection any more.
    pub(crate) fn abandon(&self) {
        self.host.lock().sink.is_closed = true;
        self.host.cancel_calls();
        self.readers.stop();
        self.read_room.notify_one();
    }
}

impl<I: ByteSource + 'static, O: ByteSink + 'static> InputServer for LineConnection<I, O> {
    type Input = I;

    fn receive(
        &self,
        input: I,
        chunk: &mut Vec<u8>,
        read: io::Result<usize>,
    ) -> Option<(I, ReadState)> {
        let mut state = self.host.lock();
        match read {
            Ok(0) => {
                state.sink.backlog.ended = true;
                state.sink.drain_deadline = Some(Instant::now() + DRAIN);
            }
            Ok(_) => state.sink.backlog.push(chunk),
            Err(error) => state.sink.failed = Some(error),
        }
        self.serve_as_reader(state, input, chunk)
    }

    fn take_over(&self, input: I) -> Option<(I, ReadState)> {
        self.serve_as_reader(self.host.lock(), input, &mut Vec::new())
    }

    fn serve_backlog(&self) {
        let (state, _) = self.serve_input(self.host.lock());
        if state.sink.read_state() == ReadState::Ready {
            self.read_room.notify_one();
        }
        self.leave(state);
    }

    fn read_state(&self) -> ReadState {
        self.host.lock().sink.read_state()
    }

    fn read_room(&self) -> Arc<Notify> {
        Arc::clone(&self.read_room)
    }

    fn fail(&self, error: io::Error) {
        self.host.lock().sink.failed = Some(error);
        self.work_available.notify_one();
    }
}
