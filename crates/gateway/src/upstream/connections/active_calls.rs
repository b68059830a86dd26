//! The active calls of an upstream session, and the routing of messages that identify no call.

use creole::internal::sync::Mutex;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};

use creole::internal::call::ClientSession;
use creole::internal::client::{ClientOffer, ServerInputRequest};
use creole::proto::model::{ClientCapabilities, InputRequest};
use creole::proto::operation::Event;

use crate::upstream::connections::session_client::SessionClient;

/// The maximum number of queued out-of-band messages of one call.
const MAX_OUT_OF_BAND: usize = 64;

/// A message of the upstream outside of a call's own stream.
#[derive(Debug)]
pub(crate) enum OutOfBand {
    InputRequest(ServerInputRequest),
    Log(Event),
}

/// The active calls of a session.
#[derive(Clone, Default)]
pub(crate) struct ActiveCalls(Arc<Mutex<ActiveCallsInner>>);

#[derive(Default)]
struct ActiveCallsInner {
    /// Oldest first.
    calls: Vec<ActiveCall>,
    /// Whether a call was abandoned before its response.
    has_abandoned_call: bool,
    /// Whether the upstream sent an input request after that, while no call was active.
    has_stray_requests: bool,
    /// The client sessions that have called here. They get log messages that belong to no call. Oldest first.
    log_sessions: Vec<ClientSession>,
    /// The client that alone owns the session, if there is one. It gets input requests that belong to no call.
    only_client: Option<SessionClient>,
    /// Whether a request for roots got no response.
    missed_roots: bool,
}

/// The maximum number of client sessions that get the log messages of one upstream session.
const MAX_LOG_SESSIONS: usize = 64;

/// An active call and its queue.
struct ActiveCall {
    number: u64,
    /// The connection or session of its client.
    client_session: Option<Arc<str>>,
    /// Whether the upstream has responded to it.
    is_answered: bool,
    out_of_band: VecDeque<OutOfBand>,
    waker: Option<Waker>,
}

impl ActiveCalls {
    fn lock(&self) -> MutexGuard<'_, ActiveCallsInner> {
        self.0.lock()
    }

    /// How many calls are active.
    pub(crate) fn count(&self) -> usize {
        self.lock().calls.len()
    }

    /// Adds an active call.
    pub(crate) fn add_call(&self, session: Option<Arc<str>>) -> ActiveCallHandle {
        let mut inner = self.lock();
        let is_listening = session.as_ref().is_none_or(|name| inner.gets_logs(name));
        let calls = &mut inner.calls;
        let number = calls.last().map_or(0, |last| last.number + 1);
        let (is_answered, out_of_band_queue, waker) = (false, VecDeque::new(), None);
        calls.push(ActiveCall {
            number,
            client_session: session,
            is_answered,
            out_of_band: out_of_band_queue,
            waker,
        });
        drop(inner);
        ActiveCallHandle {
            out_of_band: OutOfBandQueue {
                active_calls: self.clone(),
                call: CallNumber::new(number, is_listening),
            },
        }
    }

    /// Sends log messages that belong to no call to this client session too.
    fn add_log_session(&self, log: ClientSession) {
        let mut inner = self.lock();
        inner.log_sessions.retain(ClientSession::is_open);
        if inner.log_sessions.len() >= MAX_LOG_SESSIONS {
            inner.log_sessions.remove(0);
        }
        if !inner.gets_logs(log.name()) {
            inner.log_sessions.push(log);
        }
    }

    /// Sets the client that alone owns the session.
    pub(crate) fn set_client(&self, client: SessionClient) {
        // Outside of the lock: dropping the previous client aborts a task.
        let _before = self.lock().only_client.replace(client);
    }

    /// The client that alone owns the session, while that client is connected.
    pub(crate) fn client(&self) -> Option<SessionClient> {
        self.lock().only_client.clone().filter(SessionClient::is_open)
    }

    /// Records whether a request for roots got no response.
    pub(crate) fn set_missed_roots(&self, is_missed: bool) {
        self.lock().missed_roots = is_missed;
    }

    /// The offer of a session: the declared capabilities, and the handler of its input requests and log messages.
    pub(crate) fn client_offer(&self, capabilities: &Arc<ClientCapabilities>) -> ClientOffer {
        let (asked, logged) = (self.clone(), self.clone());
        ClientOffer {
            capabilities: Arc::clone(capabilities),
            on_input_request: Some(Arc::new(move |input_request| {
                asked.route_request(input_request)
            })),
            on_log: Some(Arc::new(move |event| logged.broadcast_log(&event))),
            on_violation: None,
            environment: Vec::new(),
        }
    }

    /// Whether the upstream sent input requests after its call was abandoned. A further one would be attributed to the
    /// next call.
    pub(crate) fn take_stray_requests(&self) -> bool {
        std::mem::take(&mut self.lock().has_stray_requests)
    }

    /// Resets the records of abandoned calls for a new session.
    pub(crate) fn reset(&self) {
        let mut inner = self.lock();
        (inner.has_abandoned_call, inner.missed_roots) = (false, false);
    }

    /// Routes an input request to the oldest call that accepts it, else to the client that alone owns the session.
    /// Without either it is declined. If a call was abandoned, the upstream may still be working on it.
    fn route_request(&self, input_request: ServerInputRequest) {
        let mut inner = self.lock();
        if let Some(caller) = inner.calls.iter_mut().find(|caller| caller.has_room()) {
            return caller.push(OutOfBand::InputRequest(input_request));
        }
        if let Some(client) = inner.only_client.clone().filter(SessionClient::is_open) {
            drop(inner);
            return client.request_input(input_request, self.clone());
        }
        inner.has_stray_requests |= inner.has_abandoned_call;
        inner.missed_roots |= matches!(input_request.request, InputRequest::Roots);
        // Outside of the lock: dropping an input request declines it.
        drop(inner);
        drop(input_request);
    }

    /// Sends a log message to all calls, since nothing identifies its call. Of the calls in one client session only the
    /// oldest gets it, so that the client receives it once. All calls are of one caller, unless the configuration
    /// shares the session.
    fn broadcast_log(&self, event: &Event) {
        let mut told: Vec<Arc<str>> = Vec::new();
        let mut inner = self.lock();
        for caller in &mut inner.calls {
            if let Some(session) = &caller.client_session {
                if told.contains(session) {
                    continue;
                }
                told.push(Arc::clone(session));
            }
            // A call with a full queue loses messages.
            if caller.has_room() {
                caller.push(OutOfBand::Log(event.clone()));
            }
        }
        let others = inner.log_sessions.iter().filter(|log| !told.contains(log.name()));
        let others: Vec<_> = others.cloned().collect();
        // Outside of the lock: this sends to connections.
        drop(inner);
        for log in others {
            log.send_log(event.clone());
        }
    }
}

impl ActiveCallsInner {
    /// Whether a client session gets log messages that belong to no call.
    fn gets_logs(&self, name: &Arc<str>) -> bool {
        self.log_sessions.iter().any(|log| log.name() == name)
    }
}

impl ActiveCall {
    fn has_room(&self) -> bool {
        self.out_of_band.len() < MAX_OUT_OF_BAND
    }

    fn push(&mut self, out_of_band: OutOfBand) {
        self.out_of_band.push_back(out_of_band);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The handle of an active call.
pub(crate) struct ActiveCallHandle {
    /// The out-of-band messages of the upstream.
    pub(crate) out_of_band: OutOfBandQueue,
}

impl ActiveCallHandle {
    /// Sends log messages that belong to no call to the caller's session from now on.
    pub(crate) fn route_logs(&self, context: &creole::Context) {
        if !self.out_of_band.call.gets_logs()
            && let Some(log) = context.client_session()
        {
            self.out_of_band.active_calls.add_log_session(log);
        }
    }

    /// The active calls of the same session.
    pub(crate) fn active_calls(&self) -> ActiveCalls {
        self.out_of_band.active_calls.clone()
    }

    /// The client that alone owns the session, if it is known.
    pub(crate) fn client(&self) -> Option<SessionClient> {
        self.out_of_band.active_calls.client()
    }

    /// Whether the client that alone owns the session is known.
    pub(crate) fn has_client(&self) -> bool {
        self.client().is_some()
    }

    /// Sets the client that alone owns the session.
    pub(crate) fn set_client(&self, client: SessionClient) {
        self.out_of_band.active_calls.set_client(client);
    }

    /// Whether an earlier request for roots got no response. Resets the record.
    pub(crate) fn take_missed_roots(&self) -> bool {
        std::mem::take(&mut self.out_of_band.active_calls.lock().missed_roots)
    }

    /// Records that the upstream has responded to the call.
    pub(crate) fn set_answered(&self) {
        self.out_of_band.with_entry(|own| own.is_answered = true);
    }
}

/// The queue of a call. The call is active until this is dropped.
pub(crate) struct OutOfBandQueue {
    active_calls: ActiveCalls,
    call: CallNumber,
}

/// The number of a call, and a flag: its caller's session gets log messages that belong to no call, or it has no
/// session. Packed into one word, since it is part of each call's future.
struct CallNumber(u64);

impl CallNumber {
    fn new(number: u64, is_listening: bool) -> Self {
        Self(number << 1 | u64::from(is_listening))
    }

    fn number(&self) -> u64 {
        self.0 >> 1
    }

    fn gets_logs(&self) -> bool {
        self.0 & 1 == 1
    }
}

impl OutOfBandQueue {
    /// Waits for the next message. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<OutOfBand> {
        poll_fn(|context| self.poll(context)).await
    }

    /// The next message, if there is one.
    pub(crate) fn try_recv(&mut self) -> Option<OutOfBand> {
        self.with_entry(|own| own.out_of_band.pop_front())?
    }

    /// Whether an input request is queued.
    pub(crate) fn has_input_request(&self) -> bool {
        let is_question =
            |out_of_band: &OutOfBand| matches!(out_of_band, OutOfBand::InputRequest(_));
        self.with_entry(|own| own.out_of_band.iter().any(is_question)).unwrap_or(false)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<OutOfBand>> {
        let polled = self.with_entry(|own| match own.out_of_band.pop_front() {
            Some(out_of_band) => Poll::Ready(Some(out_of_band)),
            None => {
                own.waker = Some(context.waker().clone());
                Poll::Pending
            }
        });
        polled.unwrap_or(Poll::Ready(None))
    }

    fn with_entry<T>(&self, act: impl FnOnce(&mut ActiveCall) -> T) -> Option<T> {
        let calls = &mut self.active_calls.lock().calls;
        let search = calls.binary_search_by_key(&self.call.number(), |caller| caller.number);
        search.ok().map(|index| act(&mut calls[index]))
    }
}

impl Drop for OutOfBandQueue {
    fn drop(&mut self) {
        let mut inner = self.active_calls.lock();
        let search = inner.calls.binary_search_by_key(&self.call.number(), |caller| caller.number);
        let own = search.ok().map(|index| inner.calls.remove(index));
        inner.has_abandoned_call |= own.as_ref().is_some_and(|own| !own.is_answered);
        let is_roots = |out_of_band: &OutOfBand| matches!(out_of_band, OutOfBand::InputRequest(input_request) if matches!(input_request.request, InputRequest::Roots));
        inner.missed_roots |= own.as_ref().is_some_and(|own| own.out_of_band.iter().any(is_roots));
        // Outside of the lock: dropping the queue declines its input requests.
        drop(inner);
        drop(own);
    }
}

#[cfg(test)]
mod tests {
    use creole::proto::model::Level;
    use creole::proto::wire::Raw;

    use super::*;

    fn logged(text: &str) -> Event {
        Event::Log { level: Level::Info, logger: None, data: Raw::from_value(&text) }
    }

    fn text(out_of_band: Option<OutOfBand>) -> Option<String> {
        match out_of_band? {
            OutOfBand::Log(Event::Log { data, .. }) => Some(data.as_str().to_owned()),
            _ => None,
        }
    }

    #[tokio::test]
    async fn an_event_without_a_call_is_delivered_once_to_each_session() {
        let callers = ActiveCalls::default();
        let ann = || Some(Arc::from("ann"));
        let (mut first, mut second, mut other) =
            (callers.add_call(ann()), callers.add_call(ann()), callers.add_call(None));
        callers.broadcast_log(&logged("a"));
        assert_eq!(text(first.out_of_band.recv().await), Some("\"a\"".to_owned()));
        assert_eq!(text(other.out_of_band.recv().await), Some("\"a\"".to_owned()));
        assert!(second.out_of_band.try_recv().is_none());
        drop(first);
        callers.broadcast_log(&logged("b"));
        assert_eq!(text(second.out_of_band.try_recv()), Some("\"b\"".to_owned()));
    }

    #[tokio::test]
    async fn undelivered_events_are_bounded() {
        let callers = ActiveCalls::default();
        let mut slow = callers.add_call(None);
        (0..=MAX_OUT_OF_BAND).for_each(|_| callers.broadcast_log(&logged("x")));
        let taken = std::iter::from_fn(|| slow.out_of_band.try_recv()).count();
        assert_eq!(taken, MAX_OUT_OF_BAND);
    }
}
