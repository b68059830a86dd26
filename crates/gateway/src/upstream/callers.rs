//! The calls that are under way in a conversation, and what a server says there that belongs to none that it names.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use creole::call::ClientSession;
use creole::client::{ClientOffer, ServerInputRequest};
use creole::proto::model::{ClientCapabilities, InputRequest};
use creole::proto::operation::Event;

use super::outside::OnlyClient;

/// Things that may wait to be taken by one call.
const ASIDES: usize = 64;

/// Something that a server says outside of a call's own channel.
#[derive(Debug)]
pub(super) enum Aside {
    Asked(ServerInputRequest),
    Logged(Event),
}

/// The calls that are under way in a conversation.
#[derive(Clone, Default)]
pub(super) struct Callers(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// Oldest first.
    calls: Vec<Caller>,
    /// Whether a call was given up before it was answered.
    given_up: bool,
    /// Whether the server asked something after that, when no call was under way.
    is_astray: bool,
    /// Sessions of clients that called here: they get log messages that belong to no call. Oldest first.
    logs: Vec<ClientSession>,
    /// The client that the session belongs to, if it belongs to one alone: it is asked what belongs to no call.
    client: Option<OnlyClient>,
    /// Whether the server asked for roots and nobody answered.
    missed_roots: bool,
}

/// The most sessions of clients that get log messages of one session with a server.
const MAX_LOGS: usize = 64;

/// A call under way, and what waits for it.
struct Caller {
    number: u64,
    /// The connection or session of the client that it came in.
    conversation: Option<Arc<str>>,
    /// Whether the server is done with it.
    is_answered: bool,
    asides: VecDeque<Aside>,
    waker: Option<Waker>,
}

impl Callers {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more call is under way.
    pub(super) fn join(&self, conversation: Option<Arc<str>>) -> Joined {
        let mut inner = self.lock();
        let is_heard = conversation.as_ref().is_none_or(|name| inner.hears(name));
        let calls = &mut inner.calls;
        let number = calls.last().map_or(0, |last| last.number + 1);
        let (is_answered, asides, waker) = (false, VecDeque::new(), None);
        calls.push(Caller { number, conversation, is_answered, asides, waker });
        drop(inner);
        Joined { asides: Asides { callers: self.clone(), call: CallNumber::new(number, is_heard) } }
    }

    /// Sends log messages that belong to no call to this session of a client too.
    fn add_log(&self, log: ClientSession) {
        let mut inner = self.lock();
        inner.logs.retain(ClientSession::is_open);
        if inner.logs.len() >= MAX_LOGS {
            inner.logs.remove(0);
        }
        if !inner.hears(log.name()) {
            inner.logs.push(log);
        }
    }

    /// The session belongs to this client alone.
    pub(super) fn set_client(&self, client: OnlyClient) {
        // Outside of the lock: the one before ends a task.
        let _before = self.lock().client.replace(client);
    }

    /// The client that the session belongs to alone, as long as that client is there.
    pub(super) fn client(&self) -> Option<OnlyClient> {
        self.lock().client.clone().filter(OnlyClient::is_open)
    }

    /// Notes whether the server asked for roots and nobody answered.
    pub(super) fn miss_roots(&self, is_missed: bool) {
        self.lock().missed_roots = is_missed;
    }

    /// What a server may ask, and that its questions and messages come here.
    pub(super) fn offer(&self, capabilities: &Arc<ClientCapabilities>) -> ClientOffer {
        let (asked, logged) = (self.clone(), self.clone());
        ClientOffer {
            capabilities: Arc::clone(capabilities),
            on_input_request: Some(Arc::new(move |question| asked.ask(question))),
            on_log: Some(Arc::new(move |event| logged.tell(&event))),
        }
    }

    /// Whether the server went on asking after its call was given up: what it asks next would be taken for a
    /// question of the next call.
    pub(super) fn take_astray(&self) -> bool {
        std::mem::take(&mut self.lock().is_astray)
    }

    /// Nothing was given up in a conversation that begins.
    pub(super) fn begin(&self) {
        let mut inner = self.lock();
        (inner.given_up, inner.missed_roots) = (false, false);
    }

    /// Hands a question to the oldest call that takes it, else to the client that the session belongs to alone. Nobody
    /// there is the same as a refusal. If a call was given up, the server may still be at it.
    fn ask(&self, asked: ServerInputRequest) {
        let mut inner = self.lock();
        if let Some(caller) = inner.calls.iter_mut().find(|caller| caller.has_room()) {
            return caller.hear(Aside::Asked(asked));
        }
        if let Some(client) = inner.client.clone().filter(OnlyClient::is_open) {
            drop(inner);
            return client.ask(asked, self.clone());
        }
        inner.is_astray |= inner.given_up;
        inner.missed_roots |= matches!(asked.request, InputRequest::Roots);
        // Outside of the lock: to drop a question is to refuse it.
        drop(inner);
        drop(asked);
    }

    /// Hands a message to all calls, since nothing says whose it is; of those in one session of a client, which is
    /// told of it once, to the oldest. They are calls of one caller, unless callers were declared to be one.
    fn tell(&self, event: &Event) {
        let mut told: Vec<Arc<str>> = Vec::new();
        let mut inner = self.lock();
        for caller in &mut inner.calls {
            if let Some(conversation) = &caller.conversation {
                if told.contains(conversation) {
                    continue;
                }
                told.push(Arc::clone(conversation));
            }
            // A call that takes nothing misses some of it.
            if caller.has_room() {
                caller.hear(Aside::Logged(event.clone()));
            }
        }
        let others = inner.logs.iter().filter(|log| !told.contains(log.name()));
        let others: Vec<_> = others.cloned().collect();
        // Outside of the lock: connections are told.
        drop(inner);
        for log in others {
            log.send_log(event.clone());
        }
    }
}

impl Inner {
    /// Whether a session of a client gets log messages that belong to no call.
    fn hears(&self, name: &Arc<str>) -> bool {
        self.logs.iter().any(|log| log.name() == name)
    }
}

impl Caller {
    fn has_room(&self) -> bool {
        self.asides.len() < ASIDES
    }

    fn hear(&mut self, aside: Aside) {
        self.asides.push_back(aside);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A call that is under way in a conversation.
pub(super) struct Joined {
    /// What the server says that belongs to no call that it names.
    pub(super) asides: Asides,
}

impl Joined {
    /// Sends log messages that belong to no call to the caller's session from now on.
    pub(super) fn hear_logs(&self, context: &creole::call::Context) {
        if !self.asides.call.is_heard()
            && let Some(log) = context.client_session()
        {
            self.asides.callers.add_log(log);
        }
    }

    /// The calls that are under way in the same session.
    pub(super) fn callers(&self) -> Callers {
        self.asides.callers.clone()
    }

    /// The client that the session belongs to alone, if that is known.
    pub(super) fn client(&self) -> Option<OnlyClient> {
        self.asides.callers.client()
    }

    /// Whether it is known which client the session belongs to alone.
    pub(super) fn has_client(&self) -> bool {
        self.client().is_some()
    }

    /// The session belongs to this client alone.
    pub(super) fn set_client(&self, client: OnlyClient) {
        self.asides.callers.set_client(client);
    }

    /// Whether the server asked for roots before and nobody answered; it is taken for known then.
    pub(super) fn take_missed_roots(&self) -> bool {
        std::mem::take(&mut self.asides.callers.lock().missed_roots)
    }

    /// Notes that the server is done with the call.
    pub(super) fn answered(&self) {
        self.asides.with_own(|own| own.is_answered = true);
    }
}

/// What waits for a call; the call is under way for as long as this is there.
pub(super) struct Asides {
    callers: Callers,
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

    fn is_heard(&self) -> bool {
        self.0 & 1 == 1
    }
}

impl Asides {
    /// What came next; waits for it. Cancel-safe.
    pub(super) async fn recv(&mut self) -> Option<Aside> {
        poll_fn(|context| self.poll(context)).await
    }

    /// What came next, if anything came.
    pub(super) fn try_recv(&mut self) -> Option<Aside> {
        self.with_own(|own| own.asides.pop_front())?
    }

    /// Whether the server asked something that was not taken yet.
    pub(super) fn has_question(&self) -> bool {
        let is_question = |aside: &Aside| matches!(aside, Aside::Asked(_));
        self.with_own(|own| own.asides.iter().any(is_question)).unwrap_or(false)
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Option<Aside>> {
        let polled = self.with_own(|own| match own.asides.pop_front() {
            Some(aside) => Poll::Ready(Some(aside)),
            None => {
                own.waker = Some(context.waker().clone());
                Poll::Pending
            }
        });
        polled.unwrap_or(Poll::Ready(None))
    }

    fn with_own<T>(&self, act: impl FnOnce(&mut Caller) -> T) -> Option<T> {
        let calls = &mut self.callers.lock().calls;
        let place = calls.binary_search_by_key(&self.call.number(), |caller| caller.number);
        place.ok().map(|place| act(&mut calls[place]))
    }
}

impl Drop for Asides {
    fn drop(&mut self) {
        let mut inner = self.callers.lock();
        let place = inner.calls.binary_search_by_key(&self.call.number(), |caller| caller.number);
        let own = place.ok().map(|place| inner.calls.remove(place));
        inner.given_up |= own.as_ref().is_some_and(|own| !own.is_answered);
        let is_roots = |aside: &Aside| matches!(aside, Aside::Asked(asked) if matches!(asked.request, InputRequest::Roots));
        inner.missed_roots |= own.as_ref().is_some_and(|own| own.asides.iter().any(is_roots));
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

    fn text(aside: Option<Aside>) -> Option<String> {
        match aside? {
            Aside::Logged(Event::Log { data, .. }) => Some(data.as_str().to_owned()),
            _ => None,
        }
    }

    #[tokio::test]
    async fn what_belongs_to_none_is_told_once_to_each_session() {
        let callers = Callers::default();
        let ann = || Some(Arc::from("ann"));
        let (mut first, mut second, mut other) =
            (callers.join(ann()), callers.join(ann()), callers.join(None));
        callers.tell(&logged("a"));
        assert_eq!(text(first.asides.recv().await), Some("\"a\"".to_owned()));
        assert_eq!(text(other.asides.recv().await), Some("\"a\"".to_owned()));
        assert!(second.asides.try_recv().is_none());
        drop(first);
        callers.tell(&logged("b"));
        assert_eq!(text(second.asides.try_recv()), Some("\"b\"".to_owned()));
    }

    #[tokio::test]
    async fn what_nobody_takes_is_bounded() {
        let callers = Callers::default();
        let mut slow = callers.join(None);
        (0..=ASIDES).for_each(|_| callers.tell(&logged("x")));
        let taken = std::iter::from_fn(|| slow.asides.try_recv()).count();
        assert_eq!(taken, ASIDES);
    }
}
