//! One connection: its machine, its running calls and its open input requests.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use creole_proto::framing::{FramedLine, LineDecoder};
use creole_proto::model::InputRequest;
use creole_proto::operation::{Event, Outcome};
use creole_proto::server::{
    Action, Call, CallKey, InputRequestKey, InputResponse, Machine, Outbox,
};
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::call::{Canceller, ClientChannel, ConnectionId, LOCAL_PRINCIPAL, Origin};
use crate::chain::BoxFuture;
use crate::registry::Announcement;
use crate::server::Service;
use crate::stream::ByteSink;
use crate::telemetry;

/// Unread output from which no more requests of a slow client are served and its calls have to wait.
const HIGH_WATER: usize = 256 * 1024;

/// Maximum number of queued reports of calls.
const MAX_REPORTS: usize = 1024;

/// A report of a running call.
pub(crate) enum CallReport {
    Event(CallKey, Event),
    /// An input request and the call that it belongs to; `None` for one of the session.
    InputRequest(Option<CallKey>, InputRequest, oneshot::Sender<InputResponse>),
    Done(CallKey, Outcome),
    /// A log message that belongs to no call.
    Log(Event),
}

struct RunningCall {
    task: AbortHandle,
    canceller: Canceller,
}

/// One connection.
pub(crate) struct StreamConnection {
    service: Service,
    origin: Origin,
    machine: Machine,
    lines: LineDecoder,
    outbox: Outbox,
    /// How many bytes of the outbox the client has taken, and how many were logged.
    sent_bytes: usize,
    logged: usize,
    running: HashMap<CallKey, RunningCall>,
    input_requests: HashMap<InputRequestKey, oneshot::Sender<InputResponse>>,
    reports: mpsc::Receiver<CallReport>,
    channel: Arc<ReportChannel>,
    changes: broadcast::Receiver<Announcement>,
    started: Instant,
    /// When calls are cancelled after the client has closed its side.
    drain_deadline: Option<Instant>,
}

impl StreamConnection {
    pub(crate) fn new(service: Service) -> Self {
        let (sender, reports) = mpsc::channel(MAX_REPORTS);
        let profile = service.current_profile();
        Self {
            lines: LineDecoder::new(profile.dialect.max_message),
            machine: Machine::new(profile),
            changes: service.registry().changes(),
            service,
            // The owner of the pipe is one principal, whatever it declares.
            origin: Origin::new(LOCAL_PRINCIPAL.into()),
            outbox: Outbox::default(),
            sent_bytes: 0,
            logged: 0,
            running: HashMap::new(),
            input_requests: HashMap::new(),
            reports,
            channel: Arc::new(ReportChannel { sender, roots: watch::Sender::new(()) }),
            started: Instant::now(),
            drain_deadline: None,
        }
    }

    /// Bytes that the client has not taken.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.outbox.bytes()[self.sent_bytes..]
    }

    /// The next report of a call that had to wait.
    pub(crate) fn poll_report(&mut self, context: &mut Context<'_>) -> Poll<Option<CallReport>> {
        self.reports.poll_recv(context)
    }

    /// Writes as much as the client takes without waiting: mostly everything, by one system call.
    pub(crate) fn send(&mut self, output: &impl ByteSink) -> io::Result<()> {
        self.log_unsent();
        while !self.unsent().is_empty() {
            match output.try_write(self.unsent())? {
                Some(sent) => self.mark_sent(sent),
                None => break,
            }
        }
        Ok(())
    }

    fn mark_sent(&mut self, count: usize) {
        self.sent_bytes += count;
        if self.sent_bytes == self.outbox.bytes().len() {
            self.outbox.clear_frames();
            (self.sent_bytes, self.logged) = (0, 0);
        } else if self.sent_bytes >= HIGH_WATER {
            // The sent part is discarded even if the client always lags a little.
            self.outbox.discard(self.sent_bytes);
            self.logged = self.logged.saturating_sub(self.sent_bytes);
            self.sent_bytes = 0;
        }
    }

    /// Whether more may be done for the client before it has read its output.
    pub(crate) fn has_room(&self) -> bool {
        self.unsent().len() < HIGH_WATER
    }

    /// Logs the frames that are about to be sent, if whole messages are logged.
    fn log_unsent(&mut self) {
        if self.service.logs_payloads() {
            let frames = self.outbox.bytes()[self.logged..].split(|byte| *byte == b'\n');
            frames
                .filter(|frame| !frame.is_empty())
                .for_each(|frame| telemetry::log_payload("sent", frame));
            self.logged = self.outbox.bytes().len();
        }
    }

    /// Whether no call is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.machine.in_flight() == 0
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let machine = self.machine.deadline().map(|deadline| self.started + deadline);
        machine.into_iter().chain(self.drain_deadline).min()
    }

    /// Takes bytes as long as there is room for responses; returns their number.
    pub(crate) fn take_bytes(&mut self, chunk: &[u8]) -> usize {
        let mut rest = chunk;
        while self.has_room() {
            // Announced before the line is handled: changes before a line do not concern the subscriptions that it
            // makes.
            self.announce_changes();
            let Some(line) = self.lines.next(&mut rest) else { break };
            let now = self.started.elapsed();
            log_received(&line, &self.service);
            self.machine.receive_line(line, now, &mut self.outbox);
            // Performed line by line, so that a quick call gets its response before the next line is read.
            self.perform_actions();
        }
        chunk.len() - rest.len()
    }

    /// The client closed its side: calls may continue for a while.
    pub(crate) fn begin_drain(&mut self, drain: Duration) {
        self.drain_deadline = Some(Instant::now() + drain);
    }

    /// All input was taken: a last line without a line end still counts, and no input response will arrive any more.
    pub(crate) fn end_of_input(&mut self) {
        let now = self.now();
        if let Some(line) = self.lines.finish() {
            log_received(&line, &self.service);
            self.machine.receive_line(line, now, &mut self.outbox);
        }
        self.perform_actions();
        self.machine.handle_end_of_stream(now, &mut self.outbox);
        self.perform_actions();
    }

    /// Whether the time for calls after the client has closed its side is over.
    pub(crate) fn is_drained(&self) -> bool {
        self.drain_deadline.is_some_and(|end| end <= Instant::now())
    }

    pub(crate) fn handle_report(&mut self, report: Option<CallReport>) {
        let now = self.now();
        match report {
            Some(CallReport::Event(call, event)) => {
                self.machine.send_event(call, &event, now, &mut self.outbox);
            }
            Some(CallReport::InputRequest(call, question, answer)) => {
                let ask = match call {
                    Some(call) => {
                        self.machine.request_input(call, &question, now, &mut self.outbox)
                    }
                    None => self.machine.request_session_input(&question, now, &mut self.outbox),
                };
                if let Some(ask) = ask {
                    self.input_requests.insert(ask, answer);
                }
            }
            Some(CallReport::Done(call, outcome)) => {
                self.running.remove(&call);
                self.machine.finish(call, outcome, now, &mut self.outbox);
            }
            Some(CallReport::Log(event)) => self.machine.send_session_log(&event, &mut self.outbox),
            None => {}
        }
        self.perform_actions();
    }

    /// Announces changes. On lag, every list is announced as changed; a spurious notification is harmless, a lost one
    /// is not.
    pub(crate) fn announce_changes(&mut self) {
        while !self.changes.is_empty() {
            match self.changes.try_recv() {
                Ok(it) if it.to.includes(&self.origin) => {
                    self.machine.announce(&it.change, &mut self.outbox);
                }
                Ok(_) => {}
                Err(TryRecvError::Lagged(_)) => self.machine.announce_all_lists(&mut self.outbox),
                Err(_) => return,
            }
        }
    }

    pub(crate) fn tick(&mut self) {
        let now = self.now();
        self.machine.tick(now, &mut self.outbox);
        self.perform_actions();
    }

    pub(crate) fn close(&mut self) {
        let now = self.now();
        self.machine.close(now, &mut self.outbox);
        self.perform_actions();
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn perform_actions(&mut self) {
        while let Some(action) = self.outbox.next_action() {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Start(call) => self.start_call(call),
            Action::Cancel(call, reason) => self.cancel_call(call, &reason),
            Action::InputResponse(ask, answer) => {
                if let Some(waiting) = self.input_requests.remove(&ask) {
                    // A handler that stopped waiting is not an error.
                    _ = waiting.send(answer);
                }
            }
            Action::ReleaseSubscriptions(uris) => {
                let id = ConnectionId::of(&*self.channel);
                uris.iter().for_each(|uri| self.service.registry().subscription_ended(uri, id));
            }
            Action::RootsChanged => self.channel.roots.send_replace(()),
            Action::Observe(observation) => telemetry::record_observation(&observation),
        }
    }

    /// Runs a call. Most calls finish at their first poll, in this function; only a call that has to wait becomes a
    /// task.
    ///
    /// The first poll runs on the thread that reads the input and under the lock of the connection. A handler that
    /// waits delays nothing. A handler that computes before its first wait delays the whole connection for as long:
    /// later requests, pings, cancellations, deadlines and reports of other calls. Computation belongs into
    /// `tokio::task::spawn_blocking`.
    fn start_call(&mut self, call: Call) {
        let key = call.key;
        let outlet: Arc<dyn ClientChannel> = Arc::clone(&self.channel) as _;
        let (mut future, canceller) = self.service.start_call(call, outlet, self.origin.clone());
        let mut context = Context::from_waker(Waker::noop());
        match Pin::new(&mut future).poll(&mut context) {
            Poll::Ready(outcome) => {
                // Its reports come before its response.
                while let Ok(report) = self.reports.try_recv() {
                    self.handle_report(Some(report));
                }
                let now = self.now();
                self.machine.finish(key, outcome, now, &mut self.outbox);
            }
            Poll::Pending => {
                let sender = self.channel.sender.clone();
                let task = tokio::spawn(async move {
                    let outcome = future.await;
                    _ = sender.send(CallReport::Done(key, outcome)).await;
                });
                self.running.insert(key, RunningCall { task: task.abort_handle(), canceller });
            }
        }
    }

    fn cancel_call(&mut self, call: CallKey, reason: &str) {
        if let Some(running) = self.running.remove(&call) {
            tracing::debug!(target: telemetry::TARGET, reason, "call cancelled");
            running.canceller.cancel_with_reason(reason);
            running.task.abort();
        }
    }
}

impl Drop for StreamConnection {
    fn drop(&mut self) {
        for running in self.running.values() {
            running.canceller.cancel();
            running.task.abort();
        }
        let id = ConnectionId::of(&*self.channel);
        self.machine
            .subscribed_uris()
            .for_each(|uri| self.service.registry().subscription_ended(uri, id));
    }
}

/// The channel from calls that run as tasks to their connection.
struct ReportChannel {
    sender: mpsc::Sender<CallReport>,
    /// Changes whenever the client reports changed roots.
    roots: watch::Sender<()>,
}

impl ClientChannel for ReportChannel {
    fn send_event(&self, call: CallKey, event: Event) -> BoxFuture<'_, ()> {
        Box::pin(async move { _ = self.sender.send(CallReport::Event(call, event)).await })
    }

    fn request_input(&self, call: CallKey, question: InputRequest) -> BoxFuture<'_, InputResponse> {
        Box::pin(async move {
            let (answer, waiting) = oneshot::channel();
            _ = self.sender.send(CallReport::InputRequest(Some(call), question, answer)).await;
            waiting.await.unwrap_or_else(|_| Err("the connection is closed".to_owned()))
        })
    }

    fn request_session_input(&self, question: InputRequest) -> oneshot::Receiver<InputResponse> {
        let (answer, waiting) = oneshot::channel();
        // A full queue belongs to a slow client; it gets no input request.
        _ = self.sender.try_send(CallReport::InputRequest(None, question, answer));
        waiting
    }

    fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        Some(self.roots.subscribe())
    }

    fn send_log(&self, event: Event) {
        // A full queue belongs to a slow client.
        _ = self.sender.try_send(CallReport::Log(event));
    }
}

fn log_received(line: &FramedLine<'_>, service: &Service) {
    if let FramedLine::Complete(frame) = line
        && service.logs_payloads()
    {
        telemetry::log_payload("received", frame);
    }
}
