//! The calls that are under way in a conversation, and what a server says there that belongs to none that it names.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use creole::call::ClientSession;
use creole::client::{ClientOffer, ServerInputRequest};
use creole::proto::model::{ClientCapabilities, InputRequest};
use creole::proto::operation::Event;

use crate::upstream::forward::session_input::SessionClient;

/// Things that may wait to be taken by one call.
const MAX_OUT_OF_BAND: usize = 64;

/// Something that a server says outside of a call's own channel.
#[derive(Debug)]
pub(crate) enum OutOfBand {
    InputRequest(ServerInputRequest),
    Log(Event),
}

/// The calls that are under way in a conversation.
#[derive(Clone, Default)]
pub(crate) struct ActiveCalls(Arc<Mutex<ActiveCallsInner>>);

#[derive(Default)]
struct ActiveCallsInner {
    /// Oldest first.
    calls: Vec<ActiveCall>,
    /// Whether a call was given up before it was answered.
    has_abandoned_call: bool,
    /// Whether the server asked something after that, when no call was under way.
    has_stray_requests: bool,
    /// Sessions of clients that called here: they get log messages that belong to no call. Oldest first.
    log_sessions: Vec<ClientSession>,
    /// The client that the session belongs to, if it belongs to one alone: it is asked what belongs to no call.
    only_client: Option<SessionClient>,
    /// Whether the server asked for roots and nobody answered.
    missed_roots: bool,
}

/// The most sessions of clients that get log messages of one session with a server.
const MAX_LOG_SESSIONS: usize = 64;

/// A call under way, and what waits for it.
struct ActiveCall {
    number: u64,
    /// The connection or session of the client that it came in.
    client_session: Option<Arc<str>>,
    /// Whether the server is done with it.
    is_answered: bool,
    out_of_band: VecDeque<OutOfBand>,
    waker: Option<Waker>,
}

impl ActiveCalls {
    fn lock(&self) -> MutexGuard<'_, ActiveCallsInner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more call is under way.
    pub(crate) fn add_call(&self, conversation: Option<Arc<str>>) -> ActiveCallHandle {
        let mut inner = self.lock();
        let is_heard = conversation.as_ref().is_none_or(|name| inner.gets_logs(name));
        let calls = &mut inner.calls;
        let number = calls.last().map_or(0, |last| last.number + 1);
        let (is_answered, asides, waker) = (false, VecDeque::new(), None);
        calls.push(ActiveCall {
            number,
            client_session: conversation,
            is_answered,
            out_of_band: asides,
            waker,
        });
        drop(inner);
        ActiveCallHandle {
            out_of_band: OutOfBandQueue {
                active_calls: self.clone(),
                call: CallNumber::new(number, is_heard),
            },
        }
    }

    /// Sends log messages that belong to no call to this session of a client too.
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

    /// The session belongs to this client alone.
    pub(crate) fn set_client(&self, client: SessionClient) {
        // Outside of the lock: the one before ends a task.
        let _before = self.lock().only_client.replace(client);
    }

    /// The client that the session belongs to alone, as long as that client is there.
    pub(crate) fn client(&self) -> Option<SessionClient> {
        self.lock().only_client.clone().filter(SessionClient::is_open)
    }

    /// Notes whether the server asked for roots and nobody answered.
    pub(crate) fn set_missed_roots(&self, is_missed: bool) {
        self.lock().missed_roots = is_missed;
    }

    /// What a server may ask, and that its questions and messages come here.
    pub(crate) fn client_offer(&self, capabilities: &Arc<ClientCapabilities>) -> ClientOffer {
        let (asked, logged) = (self.clone(), self.clone());
        ClientOffer {
            capabilities: Arc::clone(capabilities),
            on_input_request: Some(Arc::new(move |question| asked.route_request(question))),
            on_log: Some(Arc::new(move |event| logged.broadcast_log(&event))),
        }
    }

    /// Whether the server went on asking after its call was given up: what it asks next would be taken for a
    /// question of the next call.
    pub(crate) fn take_stray_requests(&self) -> bool {
        std::mem::take(&mut self.lock().has_stray_requests)
    }

    /// Nothing was given up in a conversation that begins.
    pub(crate) fn reset(&self) {
        let mut inner = self.lock();
        (inner.has_abandoned_call, inner.missed_roots) = (false, false);
    }

    /// Hands a question to the oldest call that takes it, else to the client that the session belongs to alone. Nobody
    /// there is the same as a refusal. If a call was given up, the server may still be at it.
    fn route_request(&self, asked: ServerInputRequest) {
        let mut inner = self.lock();
        if let Some(caller) = inner.calls.iter_mut().find(|caller| caller.has_room()) {
            return caller.push(OutOfBand::InputRequest(asked));
        }
        if let Some(client) = inner.only_client.clone().filter(SessionClient::is_open) {
            drop(inner);
            return client.request_input(asked, self.clone());
        }
        inner.has_stray_requests |= inner.has_abandoned_call;
        inner.missed_roots |= matches!(asked.request, InputRequest::Roots);
        // Outside of the lock: to drop a question is to refuse it.
        drop(inner);
        drop(asked);
    }

    /// Hands a message to all calls, since nothing says whose it is; of those in one session of a client, which is
    /// told of it once, to the oldest. They are calls of one caller, unless callers were declared to be one.
    fn broadcast_log(&self, event: &Event) {
        let mut told: Vec<Arc<str>> = Vec::new();
        let mut inner = self.lock();
        for caller in &mut inner.calls {
            if let Some(conversation) = &caller.client_session {
                if told.contains(conversation) {
                    continue;
                }
                told.push(Arc::clone(conversation));
            }
            // A call that takes nothing misses some of it.
            if caller.has_room() {
                caller.push(OutOfBand::Log(event.clone()));
            }
        }
        let others = inner.log_sessions.iter().filter(|log| !told.contains(log.name()));
        let others: Vec<_> = others.cloned().collect();
        // Outside of the lock: connections are told.
        drop(inner);
        for log in others {
            log.send_log(event.clone());
        }
    }
}

impl ActiveCallsInner {
    /// Whether a session of a client gets log messages that belong to no call.
    fn gets_logs(&self, name: &Arc<str>) -> bool {
        self.log_sessions.iter().any(|log| log.name() == name)
    }
}

impl ActiveCall {
    fn has_room(&self) -> bool {
        self.out_of_band.len() < MAX_OUT_OF_BAND
    }

    fn push(&mut self, aside: OutOfBand) {
        self.out_of_band.push_back(aside);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A call that is under way in a conversation.
pub(crate) struct ActiveCallHandle {
    /// What the server says that belongs to no call that it names.
    pub(crate) out_of_band: OutOfBandQueue,
}

impl ActiveCallHandle {
    /// Sends log messages that belong to no call to the caller's session from now on.
    pub(crate) fn route_logs(&self, context: &creole::call::Context) {
        if !self.out_of_band.call.gets_logs()
            && let Some(log) = context.client_session()
        {
            self.out_of_band.active_calls.add_log_session(log);
        }
    }

    /// The calls that are under way in the same session.
    pub(crate) fn active_calls(&self) -> ActiveCalls {
        self.out_of_band.active_calls.clone()
    }

    /// The client that the session belongs to alone, if that is known.
    pub(crate) fn client(&self) -> Option<SessionClient> {
        self.out_of_band.active_calls.client()
    }

    /// Whether it is known which client the session belongs to alone.
    pub(crate) fn has_client(&self) -> bool {
        self.client().is_some()
    }

    /// The session belongs to this client alone.
    pub(crate) fn set_client(&self, client: SessionClient) {
        self.out_of_band.active_calls.set_client(client);
    }

    /// Whether the server asked for roots before and nobody answered; it is taken for known then.
    pub(crate) fn take_missed_roots(&self) -> bool {
        std::mem::take(&mut self.out_of_band.active_calls.lock().missed_roots)
    }

    /// Notes that the server is done with the call.
    pub(crate) fn set_answered(&self) {
        self.out_of_band.with_entry(|own| own.is_answered = true);
    }
}

/// What waits for a call; the call is under way for as long as this is there.
pub(crate) struct OutOfBandQueue {
    active_calls: ActiveCalls,
    call: CallNumber,
}

/// The number of a call, and whether its caller's session gets log messages that belong to no call, or it has none. In
/// one word: it is a part of each call's future.
struct CallNumber(u64);

impl CallNumber {
    fn new(number: u64, is_heard: bool) -> Self {
        Self(number << 1 | u64::from(is_heard))
    }

    fn number(&self) -> u64 {
        self.0 >> 1
    }

    fn gets_logs(&self) -> bool {
        self.0 & 1 == 1
    }
}

impl OutOfBandQueue {
    /// What came next; waits for it. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<OutOfBand> {
        poll_fn(|context| self.poll(context)).await
    }

    /// What came next, if anything came.
    pub(crate) fn try_recv(&mut self) -> Option<OutOfBand> {
        self.with_entry(|own| own.out_of_band.pop_front())?
    }

    /// Whether the server asked something that was not taken yet.
    pub(crate) fn has_input_request(&self) -> bool {
        let is_question = |aside: &OutOfBand| matches!(aside, OutOfBand::InputRequest(_));
        self.with_entry(|own| own.out_of_band.iter().any(is_question)).unwrap_or(false)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<OutOfBand>> {
        let polled = self.with_entry(|own| match own.out_of_band.pop_front() {
            Some(aside) => Poll::Ready(Some(aside)),
            None => {
                own.waker = Some(context.waker().clone());
                Poll::Pending
            }
        });
        polled.unwrap_or(Poll::Ready(None))
    }

    fn with_entry<T>(&self, act: impl FnOnce(&mut ActiveCall) -> T) -> Option<T> {
        let calls = &mut self.active_calls.lock().calls;
        let place = calls.binary_search_by_key(&self.call.number(), |caller| caller.number);
        place.ok().map(|place| act(&mut calls[place]))
    }
}

impl Drop for OutOfBandQueue {
    fn drop(&mut self) {
        let mut inner = self.active_calls.lock();
        let place = inner.calls.binary_search_by_key(&self.call.number(), |caller| caller.number);
        let own = place.ok().map(|place| inner.calls.remove(place));
        inner.has_abandoned_call |= own.as_ref().is_some_and(|own| !own.is_answered);
        let is_roots = |aside: &OutOfBand| matches!(aside, OutOfBand::InputRequest(asked) if matches!(asked.request, InputRequest::Roots));
        inner.missed_roots |= own.as_ref().is_some_and(|own| own.out_of_band.iter().any(is_roots));
        // Outside of the lock: questions that nobody took are refused.
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

    fn text(aside: Option<OutOfBand>) -> Option<String> {
        match aside? {
            OutOfBand::Log(Event::Log { data, .. }) => Some(data.as_str().to_owned()),
            _ => None,
        }
    }

    #[tokio::test]
    async fn what_belongs_to_none_is_told_once_to_each_session() {
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
    async fn what_nobody_takes_is_bounded() {
        let callers = ActiveCalls::default();
        let mut slow = callers.add_call(None);
        (0..=MAX_OUT_OF_BAND).for_each(|_| callers.broadcast_log(&logged("x")));
        let taken = std::iter::from_fn(|| slow.out_of_band.try_recv()).count();
        assert_eq!(taken, MAX_OUT_OF_BAND);
    }
}
