//! Servers that are reached over HTTP: each message is a POST, and each call has a stream of its own.

mod answer;
mod exchange;
mod fault;
pub mod fetch;
mod head;
mod listen;
mod old_sse;
mod pool;
mod probe;
mod proxy;
mod request;
mod resumed;
mod route;
mod screen;
mod single;
mod target;
mod wire;

pub(super) use fault::status_of;
pub use old_sse::OldSseServer;
pub(super) use probe::Heard;
pub use proxy::Proxies;
pub use resumed::ResumedServer;
pub use target::Target;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use creole_proto::client::{CallKey, FrameKind, NegotiationResult, OutgoingFrame};
use creole_proto::http::request_headers::HeaderField;
use creole_proto::revision::{Era, Rules};
use http::{HeaderValue, Method};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use self::answer::Body;
use self::head::{SESSION_NAME, VERSION_NAME};
use self::request::{Headers, Request, Start};
use super::link::{Carrier, Inbox, Link, Transport, Whereabouts};
use crate::chain::BoxFuture;

/// A server that speaks Streamable HTTP.
#[derive(Clone, Debug)]
pub struct HttpServer(Target);

impl HttpServer {
    /// The server at this target. Connections are shared by all that is made of clones of it.
    pub fn new(target: Target) -> Self {
        Self(target)
    }
}

impl Transport for HttpServer {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn begin(self: Box<Self>, inbox: Inbox) -> Arc<dyn Link> {
        let inner = Inner { target: self.0, inbox, state: Mutex::default() };
        Arc::new(HttpLink { inner: Arc::new(inner) })
    }
}

/// One conversation over HTTP. Dropping it ends what is on its way.
struct HttpLink {
    inner: Arc<Inner>,
}

/// What the exchanges of a conversation share.
struct Inner {
    target: Target,
    inbox: Inbox,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The session that the server gave us.
    session: Option<HeaderValue>,
    /// How the messages of a session begin, once there was one.
    posting: Option<(Option<HeaderValue>, Arc<Start>)>,
    /// What was agreed on.
    agreed: Option<&'static Rules>,
    /// Calls that are answered by a stream.
    calls: BTreeMap<CallKey, Channel>,
    /// Resolves when the last notification of the session was delivered: what follows must not overtake it.
    notified: Option<watch::Receiver<bool>>,
    /// The stream of what belongs to no call.
    listening: Option<AbortHandle>,
    is_closed: bool,
    /// Whether others have calls in the session too.
    is_shared: bool,
}

/// The stream of one call.
struct Channel {
    task: Option<AbortHandle>,
    /// The last event that came on it, if events have names.
    last: Option<HeaderValue>,
    /// Dropped when the call is answered or has failed.
    _done: oneshot::Sender<()>,
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn era(&self) -> Option<Era> {
        self.lock().agreed.map(|rules| rules.era)
    }

    /// Notes the last event of a call that was brought in.
    fn note_event(&self, call: CallKey, last: Option<&HeaderValue>) {
        if let Some(channel) = self.lock().calls.get_mut(&call) {
            channel.last = last.cloned();
        }
    }

    /// Ends the exchange of a call.
    fn give_up(&self, call: CallKey) {
        let channel = self.lock().calls.remove(&call);
        if let Some(task) = channel.and_then(|channel| channel.task) {
            task.abort();
        }
    }

    /// Notes which task an exchange runs in, unless it is over.
    fn runs_in(&self, call: CallKey, task: AbortHandle) {
        if let Some(channel) = self.lock().calls.get_mut(&call) {
            channel.task = Some(task);
        }
    }

    fn whereabouts(&self, call: CallKey) -> Option<Whereabouts> {
        let state = self.lock();
        let last_event = state.calls.get(&call)?.last.as_ref()?.to_str().ok()?.to_owned();
        // Elsewhere, a stream that broke is a cancelled call.
        state.agreed.filter(|rules| rules.era == Era::Handshake)?;
        let session = state.session.as_ref().and_then(|session| session.to_str().ok());
        Some(Whereabouts { session: session.map(str::to_owned), last_event })
    }

    /// The headers of a request of this session that carries no message.
    fn listening_head(&self) -> Headers {
        let state = self.lock();
        let mut head = head::listening();
        if let Some(session) = &state.session {
            head.set(SESSION_NAME, session.clone());
        }
        if let Some(rules) = state.agreed.filter(|rules| rules.version_header) {
            head.set(VERSION_NAME, HeaderValue::from_static(rules.name));
        }
        head
    }

    /// A request that carries a frame, with headers that repeat what is in it.
    fn post(&self, state: &mut State, frame: &[u8], headers: Vec<HeaderField>) -> Request {
        let State { session, posting, .. } = state;
        let start = match posting {
            Some((of, start)) if of == session => start,
            _ => {
                let mut head = head::posting();
                if let Some(session) = session {
                    head.set(SESSION_NAME, session.clone());
                }
                let start = self.target.start(Method::POST, head);
                &posting.insert((session.clone(), start)).1
            }
        };
        start.request(headers, Bytes::copy_from_slice(frame))
    }
}

impl State {
    /// Resolves when all notifications before were delivered, or will never be.
    fn order(&mut self, is_notice: bool) -> exchange::Order {
        let before = self.notified.as_ref().filter(|notified| !*notified.borrow()).cloned();
        let own = is_notice.then(|| {
            let (sender, receiver) = watch::channel(false);
            self.notified = Some(receiver);
            sender
        });
        (before, own)
    }
}

impl Link for HttpLink {
    fn send(&self, frame: OutgoingFrame<'_>, headers: Vec<HeaderField>) -> Option<Carrier> {
        let inner = &self.inner;
        let mut state = inner.lock();
        if state.is_closed {
            return None;
        }
        let request = inner.post(&mut state, frame.text, headers);
        let is_stateless = state.agreed.is_some_and(|rules| rules.era == Era::Stateless);
        match frame.kind {
            FrameKind::Request(call) => {
                let (before, _) = state.order(false);
                return Some(Box::pin(exchange::call(Arc::clone(inner), call, request, before)));
            }
            // There, whoever closes the stream has said it.
            FrameKind::Notification { about: Some(_) } if is_stateless => {}
            FrameKind::Notification { about } => {
                let order = state.order(about.is_none());
                tokio::spawn(exchange::tell(Arc::clone(inner), request, order));
            }
            FrameKind::Response => {
                tokio::spawn(exchange::tell(Arc::clone(inner), request, (None, None)));
            }
        }
        None
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn opened(&self, greeting: &NegotiationResult) {
        let mut state = self.inner.lock();
        state.agreed = Some(greeting.rules);
        if greeting.rules.era == Era::Stateless {
            state.session = None;
            return;
        }
        // Not before the stream is there.
        self.inner.inbox.hears(false);
        if self.inner.target.has_streams() {
            let listening = tokio::spawn(listen::listen(Arc::downgrade(&self.inner)));
            state.listening = Some(listening.abort_handle());
        }
    }

    fn done(&self, call: CallKey) {
        // The exchange goes on to its end by itself, so that its connection can be used again.
        self.inner.lock().calls.remove(&call);
    }

    fn given_up(&self, call: CallKey) {
        self.inner.give_up(call);
    }

    fn left(&self, call: CallKey) {
        self.inner.lock().is_shared = true;
        self.inner.give_up(call);
    }

    fn whereabouts(&self, call: CallKey) -> Option<Whereabouts> {
        self.inner.whereabouts(call)
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let inner = Arc::clone(&self.inner);
        inner.shut();
        Box::pin(async move { inner.end_session().await })
    }
}

impl Inner {
    /// Follows the stream that a call was answered with. In a task, since more than an answer may come: all of it is
    /// heard, whatever its caller is busy with.
    fn follow(self: &Arc<Self>, call: CallKey, body: Body) {
        let (done, over) = oneshot::channel();
        // Entered first: the stream may be over before it is known here.
        self.lock().calls.insert(call, Channel { task: None, last: None, _done: done });
        let task = tokio::spawn(exchange::follow(Arc::clone(self), call, body, over));
        self.runs_in(call, task.abort_handle());
        // The call may be over as well, and whoever ended it did not see the channel.
        if !self.inbox.is_open(call) {
            self.lock().calls.remove(&call);
        }
    }

    /// Ends all that is on its way.
    fn shut(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let listening = state.listening.take();
        let calls = std::mem::take(&mut state.calls).into_values();
        let calls = calls.filter_map(|channel| channel.task);
        calls.chain(listening).for_each(|task| task.abort());
    }

    /// Tells the server that its session is over, once; many do not care (405).
    async fn end_session(&self) {
        let head = self.listening_head();
        let session = {
            let mut state = self.lock();
            let is_own = !state.is_shared;
            state.session.take().filter(|_| is_own)
        };
        if session.is_some() {
            let request = self.target.request(Method::DELETE, head, Bytes::new());
            let _ = self.target.send(&request).await;
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.inner.shut();
        if let Ok(runtime) = Handle::try_current() {
            let inner = Arc::clone(&self.inner);
            runtime.spawn(async move { inner.end_session().await });
        }
    }
}
