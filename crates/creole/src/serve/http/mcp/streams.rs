//! The streams of a host: one for messages that belong to no request, and one for each request that may be resumed.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::model::Implementation;
use creole_proto::revision::Rules;
use creole_proto::server::{FrameRole, FrameRoute, Machine, Outbox};
use creole_proto::wire::{Fields, Frame, ScanError};
use tokio::time::Instant;

use crate::call::{ConnectionId, Origin};
use crate::host::{
    COMMON_STREAM, FrameSink, HostedCall, MachineHost, OpenCalls, RequestCaller, StartedCalls,
    StreamKey, resubscribe,
};
use crate::principal::Principal;
use crate::serve::http::mcp::stream::{NextEvent, ReaderId, ResponseStream, StreamEvent};
use crate::server::Service;
use crate::telemetry::facts::Transport;
use crate::telemetry::metrics::ServerMetrics;
use crate::telemetry::request_log;

/// How long a stream is kept after its response was written, for a client that did not receive it.
pub(crate) const STREAM_RETENTION: Duration = Duration::from_secs(60);

/// When the reader of a stream reconnects that ends because the server stops.
pub(crate) const RECONNECT_AFTER: Duration = Duration::from_millis(500);

/// Maximum number of streams that are kept after their responses.
const MAX_KEPT_STREAMS: usize = 32;

/// Maximum size of all streams that are kept after their responses.
const MAX_KEPT_BYTES: usize = 4 * 1024 * 1024;

/// The host of a session or of a stateless request.
pub(crate) type HttpHost = MachineHost<ResponseStreams>;

/// The streams of a host.
pub(crate) struct ResponseStreams {
    /// The stream of messages that belong to no request. It is inline, because a stateless request has no other.
    common: ResponseStream,
    others: Vec<(StreamKey, ResponseStream)>,
    last_key: StreamKey,
    /// Whether whole messages are logged.
    logs_payloads: bool,
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

impl FrameSink for ResponseStreams {
    // Most sessions are idle most of the time.
    const FREES_BUFFERS: bool = true;
    const HAS_STREAMS: bool = true;
    const TRANSPORT: Transport = Transport::Http { version: "1.1" };

    fn take_frames(&mut self, outbox: &mut Outbox, calls: &OpenCalls, current: StreamKey) {
        if let Some((route, role)) = only_frame(outbox) {
            // The common case: one response, which is not copied.
            let mut text = outbox.take_bytes();
            text.pop();
            let event = StreamEvent { role, text: text.into() };
            return self.deliver(stream_for(route, calls, current), event);
        }
        for frame in outbox.frames() {
            let event = StreamEvent { role: frame.role, text: Bytes::copy_from_slice(frame.text) };
            self.deliver(stream_for(frame.route, calls, current), event);
        }
        outbox.clear_frames();
    }

    fn has_room(&self, _: &Outbox, stream: StreamKey) -> bool {
        self.get(stream).is_none_or(ResponseStream::has_room)
    }

    fn end_stream(&mut self, stream: StreamKey) {
        if let Some(stream) = self.get_mut(stream) {
            stream.end();
        }
    }

    fn release_stream(&mut self, stream: StreamKey, retry: Duration) {
        if let Some(stream) = self.get_mut(stream) {
            stream.release(retry);
        }
    }
}

/// The route and role of the only frame.
fn only_frame(outbox: &Outbox) -> Option<(FrameRoute, FrameRole)> {
    let mut frames = outbox.frames();
    let first = frames.next()?;
    frames.next().is_none().then_some((first.route, first.role))
}

fn stream_for(route: FrameRoute, calls: &OpenCalls, current: StreamKey) -> StreamKey {
    match route {
        FrameRoute::Reply => current,
        FrameRoute::Call(call) => calls.stream_of(call),
        FrameRoute::Session => COMMON_STREAM,
    }
}

impl ResponseStreams {
    fn get(&self, key: StreamKey) -> Option<&ResponseStream> {
        if key == COMMON_STREAM {
            return Some(&self.common);
        }
        self.others.iter().find(|(found, _)| *found == key).map(|(_, stream)| stream)
    }

    fn get_mut(&mut self, key: StreamKey) -> Option<&mut ResponseStream> {
        if key == COMMON_STREAM {
            return Some(&mut self.common);
        }
        self.others.iter_mut().find(|(found, _)| *found == key).map(|(_, stream)| stream)
    }

    fn deliver(&mut self, key: StreamKey, event: StreamEvent) {
        if self.logs_payloads {
            request_log::log_payload("sent", &event.text);
        }
        if let Some(stream) = self.get_mut(key) {
            stream.push(event);
        }
    }

    fn end_all(&mut self) {
        self.common.end();
        self.others.iter_mut().for_each(|(_, stream)| stream.end());
    }

    /// Drops streams whose responses are old, and the oldest ones when there are many.
    fn forget(&mut self) {
        let now = Instant::now();
        let is_old = |stream: &ResponseStream| {
            stream.over_since().is_some_and(|since| since + STREAM_RETENTION <= now)
        };
        self.others.retain(|(_, stream)| !is_old(stream));
        let is_over = |(_, stream): &(StreamKey, ResponseStream)| stream.over_since().is_some();
        loop {
            let over = self.others.iter().filter(|entry| is_over(entry));
            let (count, bytes) =
                over.fold((0, 0), |(count, bytes), (_, stream)| (count + 1, bytes + stream.size()));
            if count < MAX_KEPT_STREAMS && bytes <= MAX_KEPT_BYTES {
                return;
            }
            let Some(oldest) = self.others.iter().position(is_over) else { return };
            self.others.remove(oldest);
        }
    }
}

impl HttpHost {
    /// A host that has received no message.
    pub(crate) fn open(service: Service, origin: Origin, common: ResponseStream) -> Arc<Self> {
        let machine = Machine::new(service.current_profile());
        Self::with_machine(service, origin, common, machine)
    }

    /// A host that continues from its saved record.
    pub(crate) fn resume(
        service: Service,
        principal: Principal,
        record: &str,
    ) -> Option<Arc<Self>> {
        let machine = Machine::resume(service.current_profile(), record)?;
        let origin = Origin::new(principal);
        let host = Self::with_machine(service, origin, ResponseStream::of_session(), machine);
        resubscribe(&host);
        Some(host)
    }

    fn with_machine(
        service: Service,
        origin: Origin,
        common: ResponseStream,
        machine: Machine,
    ) -> Arc<Self> {
        let logs_payloads = service.logs_payloads();
        let streams =
            ResponseStreams { common, others: Vec::new(), last_key: COMMON_STREAM, logs_payloads };
        Self::new(service, origin, machine.with_repeated_ids(), streams)
    }

    /// The metrics of the server, if they are counted.
    pub(crate) fn server_metrics(&self) -> Option<Arc<ServerMetrics>> {
        self.service().server_metrics()
    }

    pub(crate) fn rules(&self) -> &'static Rules {
        self.lock().machine.rules()
    }

    /// The rules of the session, its client, and the number of its calls.
    pub(crate) fn inspect(&self) -> (&'static Rules, Option<Implementation>, usize) {
        let machine = &self.lock().machine;
        let client = machine.session_caller().client.and_then(|client| client.decode().ok());
        (machine.rules(), client, machine.in_flight())
    }

    /// Whether there are unsaved changes.
    pub(crate) fn is_changed(&self) -> bool {
        self.lock().machine.has_changed_session()
    }

    /// The record to save, if it changed since the last call of this function.
    pub(crate) fn changed_record(&self) -> Option<String> {
        self.lock().machine.take_changed_record()
    }

    /// The record could not be saved.
    pub(crate) fn keep_changed_record(&self) {
        self.lock().machine.keep_changed_record();
    }

    /// Whether a handshake was started.
    pub(crate) fn is_opened(&self) -> bool {
        self.lock().machine.has_begun_handshake()
    }

    /// Whether this message is the response to an input request that is open, or was open until a moment ago.
    pub(crate) fn is_expected_response(&self, fields: &Fields<'_>) -> bool {
        self.lock().machine.is_awaited_response(fields)
    }

    /// Whether the call that a client cancels with these parameters of a notification is running.
    pub(crate) fn is_cancellable(&self, params: Option<&str>) -> bool {
        self.lock().machine.is_cancellable(params)
    }

    /// Takes over what another replica recorded of the session.
    pub(crate) fn refresh(self: &Arc<Self>, record: &str) {
        let Some(ended) = self.lock().machine.refresh(record) else { return };
        for uri in ended {
            self.service().registry().subscription_ended(&uri, ConnectionId::of(&**self));
        }
        resubscribe(self);
    }

    /// The client ended the handshake at another replica.
    pub(crate) fn confirm_elsewhere(&self) {
        let now = self.now();
        let mut state = self.lock();
        if state.machine.awaits_confirmation() {
            let confirm =
                |machine: &mut Machine, _, out: &mut Outbox| machine.confirm_elsewhere(out);
            self.drive_locked(&mut state, now, COMMON_STREAM, confirm);
        }
    }

    /// Names the replica in the ids of input requests.
    pub(crate) fn name_input_requests(&self, replica: &str) {
        self.lock().machine.set_input_request_suffix(&format!(".{replica}"));
    }

    /// Opens a stream for another request.
    pub(crate) fn open_stream(&self) -> StreamKey {
        let streams = &mut self.lock().sink;
        streams.forget();
        streams.last_key += 1;
        streams.others.push((streams.last_key, ResponseStream::resumable()));
        streams.last_key
    }

    /// Drops streams that cannot be read again.
    pub(crate) fn forget_streams(&self) {
        self.lock().sink.forget();
    }

    /// Whether a call has a stream that can be read or resumed.
    pub(crate) fn has_streams(&self) -> bool {
        let streams = &mut self.lock().sink;
        streams.forget();
        !streams.others.is_empty()
    }

    /// Drops a stream that will not be read.
    pub(crate) fn drop_stream(&self, key: StreamKey) {
        self.lock().sink.others.retain(|(found, _)| *found != key);
    }

    /// Passes a message of this caller to the machine; the returned calls need their first poll.
    pub(crate) fn receive_scanned(
        self: &Arc<Self>,
        scanned: Result<&Frame<'_>, &ScanError>,
        stream: StreamKey,
        caller: RequestCaller<'_>,
    ) -> StartedCalls {
        self.receive(self.now(), stream, Some(caller), |machine, now, out| {
            machine.receive_scanned(scanned, now, out);
        })
    }

    /// Passes the first message to the machine, whose clock has just been set.
    pub(crate) fn receive_first(
        self: &Arc<Self>,
        scanned: Result<&Frame<'_>, &ScanError>,
        caller: RequestCaller<'_>,
    ) -> StartedCalls {
        self.receive(Duration::ZERO, COMMON_STREAM, Some(caller), |machine, now, out| {
            machine.receive_scanned(scanned, now, out);
        })
    }

    /// Rejects a message before the machine sees it.
    pub(crate) fn refuse(&self, fields: Option<&Fields<'_>>, fault: &Fault, rules: &'static Rules) {
        self.drive(COMMON_STREAM, |machine, _, out| {
            machine.reject_scanned(fields, fault, rules, out);
        });
    }

    /// Ends the subscriptions to changes, each with its graceful result.
    pub(crate) fn end_subscriptions(&self) {
        self.drive(COMMON_STREAM, |machine, _, out| machine.close_listeners(out));
    }

    /// Ends the stream of messages that belong to no request. Its reader reconnects, to another replica if there is one.
    pub(crate) fn end_common(&self) {
        self.lock().sink.common.end_for_reconnection(RECONNECT_AFTER);
    }

    /// Attaches a reader to the stream of messages that belong to no request, for a client that read the events of another
    /// replica until now; [`ResponseStream::take_over`]. Also returns the number of the event before.
    pub(crate) fn take_over_common(&self, is_read: impl Fn(&[u8]) -> bool) -> (ReaderId, u64) {
        let common = &mut self.lock().sink.common;
        let reader = common.take_over(is_read);
        (reader, common.last_read())
    }

    /// Ends the session: cancels calls and ends streams.
    pub(crate) fn close_session(&self) {
        self.close();
        self.lock().sink.end_all();
    }

    /// Polls calls and removes the finished and cancelled ones. The caller reads their stream right afterwards, so it is
    /// not woken.
    pub(crate) fn poll_calls(
        &self,
        calls: &mut Vec<HostedCall>,
        stream: StreamKey,
        context: &mut Context<'_>,
    ) {
        calls.retain_mut(|call| match call.poll(context) {
            Some(Poll::Pending) => true,
            Some(Poll::Ready(outcome)) => {
                if let Some(stream) = self.lock().sink.get_mut(stream) {
                    stream.clear_waker(context.waker());
                }
                self.finish_call(call.key, outcome);
                false
            }
            None => false,
        });
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
        let mut state = self.lock();
        loop {
            let Some(stream) = state.sink.get_mut(key) else {
                return Poll::Ready(FirstReply::Nothing);
            };
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
                Poll::Ready(NextEvent::Event(..)) => {
                    // The client does not get this message, which makes room for the next.
                    self.notify_room(&mut state);
                    continue;
                }
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
        self.lock().sink.get_mut(key).map(|stream| stream.attach(last))
    }

    /// The next event of a stream.
    pub(crate) fn poll_next(
        &self,
        key: StreamKey,
        reader: ReaderId,
        context: &Context<'_>,
    ) -> Poll<NextEvent> {
        let mut state = self.lock();
        let next = match state.sink.get_mut(key) {
            Some(stream) => stream.poll(reader, context),
            None => Poll::Ready(NextEvent::Over),
        };
        if let Poll::Ready(NextEvent::Event(..)) = next {
            self.notify_room(&mut state);
        }
        next
    }
}
