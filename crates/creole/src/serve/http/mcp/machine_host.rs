//! Hosts a protocol machine and the streams of its messages, shared by the requests that read and write them.

mod resubscribe;
mod state;
#[cfg(test)]
mod tests;

use crate::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::InputRequest;
use creole_proto::operation::{Event as CallEvent, Outcome};
use creole_proto::revision::Rules;
use creole_proto::server::{
    Call, CallKey, FrameRole, InputRequestKey, InputResponse, Machine, Outbox,
};
use creole_proto::wire::{Fields, Frame, ScanError};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::call::{ClientChannel, ConnectionId, Origin};
use crate::chain::BoxFuture;
use crate::registry::Announcement;
use crate::serve::http::mcp::stream::{NextEvent, ReaderId, ResponseStream, StreamEvent};
use crate::server::Service;
use state::{MachineHostState, OpenCall};

/// The key of a stream within its machine host.
pub(crate) type StreamKey = u64;

/// The stream of messages that belong to no request.
pub(crate) const COMMON_STREAM: StreamKey = 0;

/// A machine and its streams.
pub(crate) struct MachineHost {
    service: Service,
    origin: Origin,
    started: Instant,
    inner: Mutex<MachineHostState>,
    /// Signals that a stream was read from.
    room: Notify,
}

/// A call that is not finished at its first poll.
pub(crate) struct UnfinishedCall {
    pub(crate) key: CallKey,
    pub(crate) future: BoxFuture<'static, Outcome>,
}

/// The form of the response to a request.
pub(crate) enum FirstReply {
    /// This message.
    Response(Bytes, Option<FaultKind>),
    /// An event stream.
    Events,
    /// No message.
    Nothing,
}

impl MachineHost {
    /// A machine host that has received no message.
    pub(crate) fn new(service: Service, origin: Origin, common: ResponseStream) -> Arc<Self> {
        let machine = Machine::new(service.current_profile());
        Self::with_machine(service, origin, common, machine)
    }

    /// A machine host that continues from its saved record.
    pub(crate) fn resume(service: Service, principal: Arc<str>, record: &str) -> Option<Arc<Self>> {
        let machine = Machine::resume(service.current_profile(), record)?;
        let origin = Origin::new(principal);
        let conversation =
            Self::with_machine(service, origin, ResponseStream::resumable(), machine);
        resubscribe::resubscribe(&conversation);
        Some(conversation)
    }

    fn with_machine(
        service: Service,
        origin: Origin,
        common: ResponseStream,
        machine: Machine,
    ) -> Arc<Self> {
        let machine = machine.with_repeated_ids();
        let logs_payloads = service.logs_payloads();
        Arc::new(Self {
            service,
            origin,
            started: Instant::now(),
            inner: Mutex::new(MachineHostState {
                machine,
                outbox: Outbox::default(),
                common,
                streams: Vec::new(),
                last_stream: COMMON_STREAM,
                calls: Vec::new(),
                input_requests: Vec::new(),
                roots: None,
                logs_payloads,
            }),
            room: Notify::new(),
        })
    }

    /// The id of its connection.
    fn id(&self) -> ConnectionId {
        ConnectionId::of(self)
    }

    /// When it started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    pub(crate) fn rules(&self) -> &'static Rules {
        self.lock().machine.rules()
    }

    /// Whether there are unsaved changes.
    pub(crate) fn is_changed(&self) -> bool {
        self.lock().machine.has_changed_session()
    }

    /// The record to save, if it changed since the last call of this function.
    pub(crate) fn changed_record(&self) -> Option<String> {
        self.lock().machine.take_changed_record()
    }

    /// Whether a handshake was started.
    pub(crate) fn is_opened(&self) -> bool {
        self.lock().machine.has_begun_handshake()
    }

    /// Whether this message is the response to an input request that is open, or was open until a moment ago.
    pub(crate) fn is_expected_response(&self, fields: &Fields<'_>) -> bool {
        self.lock().machine.is_awaited_response(fields)
    }

    /// Opens a stream for another request.
    pub(crate) fn open_stream(&self) -> StreamKey {
        let mut inner = self.lock();
        inner.forget_streams();
        inner.last_stream += 1;
        let key = inner.last_stream;
        inner.streams.push((key, ResponseStream::resumable()));
        key
    }

    /// Drops streams that cannot be read again.
    pub(crate) fn forget_streams(&self) {
        self.lock().forget_streams();
    }

    /// Whether a call has a stream that can be read or resumed.
    pub(crate) fn has_streams(&self) -> bool {
        let mut inner = self.lock();
        inner.forget_streams();
        !inner.streams.is_empty()
    }

    /// Drops a stream that will not be read.
    pub(crate) fn drop_stream(&self, key: StreamKey) {
        self.lock().streams.retain(|(found, _)| *found != key);
    }

    /// Passes a message to the machine; the returned calls have to be [started](Self::start_call).
    pub(crate) fn receive(
        &self,
        scanned: Result<&Frame<'_>, &ScanError>,
        stream: StreamKey,
    ) -> Vec<Call> {
        self.drive_machine(stream, |machine, now, out| machine.receive_scanned(scanned, now, out))
    }

    /// Passes the first message to the machine, whose clock has just been set.
    pub(crate) fn receive_first(&self, scanned: Result<&Frame<'_>, &ScanError>) -> Vec<Call> {
        self.drive_machine_at(Duration::ZERO, COMMON_STREAM, |machine, now, out| {
            machine.receive_scanned(scanned, now, out);
        })
    }

    /// Rejects a message before the machine sees it.
    pub(crate) fn refuse(&self, fields: Option<&Fields<'_>>, fault: &Fault, rules: &'static Rules) {
        self.drive_machine(COMMON_STREAM, |machine, _, out| {
            machine.reject_scanned(fields, fault, rules, out)
        });
    }

    /// Starts a call. Most calls finish at their first poll, in this function; the others are returned. If the same
    /// task continues them, it need not poll them before it is woken.
    pub(crate) fn start_call(
        self: &Arc<Self>,
        call: Call,
        context: &mut Context<'_>,
    ) -> Option<UnfinishedCall> {
        let key = call.key;
        let outlet = Arc::clone(self) as Arc<dyn ClientChannel>;
        let (mut future, canceller) = self.service.start_call(call, outlet, self.origin.clone());
        // Before the first poll: another request of the session may cancel the call while its handler computes.
        self.lock().call_mut(key)?.canceller = Some(canceller);
        match future.as_mut().poll(context) {
            Poll::Ready(outcome) => {
                self.finish_call(key, outcome);
                None
            }
            Poll::Pending => {
                self.lock().call_mut(key).is_some().then_some(UnfinishedCall { key, future })
            }
        }
    }

    /// Reports the outcome of a call.
    pub(crate) fn finish_call(&self, key: CallKey, outcome: Outcome) {
        let now = self.started.elapsed();
        let mut inner = self.lock();
        let MachineHostState { machine, outbox, .. } = &mut *inner;
        machine.finish(key, outcome, now, outbox);
        inner.perform_actions(&self.service, self.id(), COMMON_STREAM);
        if !inner.machine.is_open(key) {
            inner.calls.retain(|open| open.key != key);
        }
        if inner.calls.is_empty() {
            inner.shrink();
        }
    }

    /// Polls calls and removes the finished ones. The caller reads their stream right afterwards, so it is not woken.
    pub(crate) fn poll_calls(
        &self,
        calls: &mut Vec<UnfinishedCall>,
        stream: StreamKey,
        context: &mut Context<'_>,
    ) {
        calls.retain_mut(|call| match call.future.as_mut().poll(context) {
            Poll::Ready(outcome) => {
                if let Some(stream) = self.lock().stream(stream) {
                    stream.clear_waker(context.waker());
                }
                self.finish_call(call.key, outcome);
                false
            }
            Poll::Pending => true,
        });
    }

    /// Sets the task that runs a call, to be aborted with it: at once if the call ended since the task was spawned.
    pub(crate) fn set_task(&self, key: CallKey, task: AbortHandle) {
        match self.lock().call_mut(key) {
            Some(open) => open.task = Some(task),
            None => task.abort(),
        }
    }

    /// Whether the call has neither its response nor been cancelled.
    pub(crate) fn is_call_open(&self, key: CallKey) -> bool {
        self.lock().machine.is_open(key)
    }

    /// Announces a change, or, with `None` after missed changes, every list as changed.
    pub(crate) fn announce(&self, announcement: Option<&Announcement>) {
        if announcement.is_some_and(|it| !it.to.includes(&self.origin)) {
            return;
        }
        self.drive_machine(COMMON_STREAM, |machine, _, out| match announcement {
            Some(announcement) => machine.announce(&announcement.change, out),
            None => machine.announce_all_lists(out),
        });
    }

    /// Ends the subscriptions to changes, each with its graceful result.
    pub(crate) fn end_subscriptions(&self) {
        self.drive_machine(COMMON_STREAM, |machine, _, out| machine.close_listeners(out));
    }

    /// Ends the stream of messages that belong to no request.
    pub(crate) fn end_common(&self) {
        self.lock().common.end();
    }

    /// Whether a call is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !self.lock().calls.is_empty()
    }

    /// Ends calls and input requests whose deadline has passed.
    pub(crate) fn tick(&self) {
        self.drive_machine(COMMON_STREAM, |machine, now, out| machine.tick(now, out));
    }

    /// When [`tick`](Self::tick) is next due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.lock().machine.deadline().map(|deadline| self.started + deadline)
    }

    /// Ends the session: cancels calls and ends streams.
    pub(crate) fn close(&self) {
        self.drive_machine(COMMON_STREAM, |machine, now, out| machine.close(now, out));
        let mut inner = self.lock();
        inner.calls.drain(..).for_each(OpenCall::stop);
        inner.common.end();
        inner.streams.iter_mut().for_each(|(_, stream)| stream.end());
    }

    /// Cancels calls whose client has disconnected.
    pub(crate) fn cancel_calls(&self) {
        self.lock().calls.drain(..).for_each(OpenCall::stop);
    }

    /// The form of the response to the request of this stream; waits until it is known. For a client that does not
    /// accept streams, waits for the response itself.
    pub(crate) fn poll_first_reply(
        &self,
        key: StreamKey,
        reader: ReaderId,
        takes_events: bool,
        context: &Context<'_>,
    ) -> Poll<FirstReply> {
        let mut inner = self.lock();
        let Some(stream) = inner.stream(key) else { return Poll::Ready(FirstReply::Nothing) };
        loop {
            let is_answer = matches!(stream.peek(), Some(FrameRole::Response(_)));
            let is_aside = stream.peek().is_some() && !is_answer || stream.is_releasing();
            if is_aside && takes_events {
                return Poll::Ready(FirstReply::Events);
            }
            return match stream.poll(reader, context) {
                Poll::Ready(NextEvent::Event(
                    _,
                    StreamEvent { role: FrameRole::Response(fault), text },
                )) => Poll::Ready(FirstReply::Response(text, fault)),
                Poll::Ready(NextEvent::Event(..)) => continue,
                Poll::Ready(_) => Poll::Ready(FirstReply::Nothing),
                Poll::Pending => Poll::Pending,
            };
        }
    }

    /// The form of the response to the request of this stream, if it is known already.
    pub(crate) fn first_reply_now(
        &self,
        key: StreamKey,
        reader: ReaderId,
        takes_events: bool,
    ) -> FirstReply {
        let context = Context::from_waker(Waker::noop());
        match self.poll_first_reply(key, reader, takes_events, &context) {
            Poll::Ready(first) => first,
            Poll::Pending => FirstReply::Nothing,
        }
    }

    /// Attaches a reader to a stream, after the event numbered `last`; `None` if there is no such stream.
    pub(crate) fn attach(&self, key: StreamKey, last: Option<u64>) -> Option<ReaderId> {
        self.lock().stream(key).map(|stream| stream.attach(last))
    }

    /// The next event of a stream.
    pub(crate) fn poll_next(
        &self,
        key: StreamKey,
        reader: ReaderId,
        context: &Context<'_>,
    ) -> Poll<NextEvent> {
        let next = match self.lock().stream(key) {
            Some(stream) => stream.poll(reader, context),
            None => Poll::Ready(NextEvent::Over),
        };
        if let Poll::Ready(NextEvent::Event(..)) = next {
            self.room.notify_waiters();
        }
        next
    }

    /// Gives input to the machine and performs its actions; frames for the received message go to `stream`.
    fn drive_machine(
        &self,
        stream: StreamKey,
        act: impl FnOnce(&mut Machine, Duration, &mut Outbox),
    ) -> Vec<Call> {
        self.drive_machine_at(self.started.elapsed(), stream, act)
    }

    fn drive_machine_at(
        &self,
        now: Duration,
        stream: StreamKey,
        act: impl FnOnce(&mut Machine, Duration, &mut Outbox),
    ) -> Vec<Call> {
        let mut inner = self.lock();
        let MachineHostState { machine, outbox, .. } = &mut *inner;
        act(machine, now, outbox);
        inner.perform_actions(&self.service, self.id(), stream)
    }

    fn lock(&self) -> MutexGuard<'_, MachineHostState> {
        // Every change is complete before anything can panic.
        self.inner.lock()
    }

    /// Sends an input request to the client; the input response arrives later.
    fn send_input_request(
        &self,
        ask: impl FnOnce(&mut Machine, Duration, &mut Outbox) -> Option<InputRequestKey>,
    ) -> oneshot::Receiver<InputResponse> {
        let (answer, waiting) = oneshot::channel();
        let now = self.started.elapsed();
        let mut inner = self.lock();
        let MachineHostState { machine, outbox, .. } = &mut *inner;
        if let Some(ask) = ask(machine, now, outbox) {
            // Removes the input requests of finished calls, which no longer wait for a response.
            inner.input_requests.retain(|(_, waiting)| !waiting.is_closed());
            inner.input_requests.push((ask, answer));
        }
        inner.perform_actions(&self.service, self.id(), COMMON_STREAM);
        waiting
    }

    /// Waits until the client of a call has read enough.
    async fn wait_for_room(&self, call: CallKey) {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            room.as_mut().enable();
            if self.lock().has_room(call) {
                return;
            }
            room.await;
        }
    }
}

impl Drop for MachineHost {
    fn drop(&mut self) {
        let id = self.id();
        let inner = self.inner.get_mut();
        inner
            .machine
            .subscribed_uris()
            .for_each(|uri| self.service.registry().subscription_ended(uri, id));
    }
}

impl ClientChannel for MachineHost {
    fn send_event(&self, call: CallKey, event: CallEvent) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.wait_for_room(call).await;
            self.drive_machine(COMMON_STREAM, |machine, now, out| {
                machine.send_event(call, &event, now, out)
            });
        })
    }

    fn request_input(&self, call: CallKey, question: InputRequest) -> BoxFuture<'_, InputResponse> {
        Box::pin(async move {
            let waiting = self.send_input_request(|machine, now, out| {
                machine.request_input(call, &question, now, out)
            });
            waiting.await.unwrap_or_else(|_| Err("the connection is closed".to_owned()))
        })
    }

    fn request_session_input(&self, question: InputRequest) -> oneshot::Receiver<InputResponse> {
        self.send_input_request(|machine, now, out| {
            machine.request_session_input(&question, now, out)
        })
    }

    fn watch_roots(&self) -> Option<watch::Receiver<()>> {
        let mut inner = self.lock();
        Some(inner.roots.get_or_insert_with(|| Box::new(watch::Sender::new(()))).subscribe())
    }

    fn send_log(&self, event: CallEvent) {
        self.drive_machine(COMMON_STREAM, |machine, _, out| machine.send_session_log(&event, out));
    }

    fn release_connection(&self, call: CallKey, retry: Duration) {
        let mut inner = self.lock();
        let key = inner.stream_of(call);
        if let Some(stream) = inner.stream(key).filter(|_| key != COMMON_STREAM) {
            stream.release(retry);
        }
    }
}
