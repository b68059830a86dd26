//! Servers that are reached over HTTP: each message is a POST, and each call has a stream of its own.

mod address;
pub(crate) mod conn;
mod exchange;
mod fault;
pub mod fetch;
mod legacy_sse;
mod listen;
mod probe;
mod request_headers;
mod resumed;

pub use crate::client::transport::http::conn::proxy::Proxies;
pub use address::HttpAddress;
pub(crate) use fault::status_of;
pub use legacy_sse::LegacySseServer;
pub(crate) use probe::ProbeResponse;
pub use resumed::ResumedServer;

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

use crate::chain::BoxFuture;
use crate::client::transport::http::conn::request::{HeaderList, HttpRequest, RequestTemplate};
use crate::client::transport::http::conn::response::ResponseBody;
use crate::client::transport::http::request_headers::{SESSION_NAME, VERSION_NAME};
use crate::client::transport::{Exchange, Inbox, ResumePoint, Transport, TransportHandle};

/// A server that speaks Streamable HTTP.
#[derive(Clone, Debug)]
pub struct HttpServer(HttpAddress);

impl HttpServer {
    /// The server at this target. Connections are shared by all that is made of clones of it.
    pub fn new(target: HttpAddress) -> Self {
        Self(target)
    }
}

impl Transport for HttpServer {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn connect(self: Box<Self>, inbox: Inbox) -> Arc<dyn TransportHandle> {
        let inner = HttpSession { target: self.0, inbox, state: Mutex::default() };
        Arc::new(HttpTransport { inner: Arc::new(inner) })
    }
}

/// One conversation over HTTP. Dropping it ends what is on its way.
struct HttpTransport {
    inner: Arc<HttpSession>,
}

/// What the exchanges of a conversation share.
struct HttpSession {
    target: HttpAddress,
    inbox: Inbox,
    state: Mutex<HttpSessionState>,
}

#[derive(Default)]
struct HttpSessionState {
    /// The session that the server gave us.
    session: Option<HeaderValue>,
    /// How the messages of a session begin, once there was one.
    post_template: Option<(Option<HeaderValue>, Arc<RequestTemplate>)>,
    /// What was agreed on.
    negotiated_rules: Option<&'static Rules>,
    /// Calls that are answered by a stream.
    calls: BTreeMap<CallKey, CallStream>,
    /// Resolves when the last notification of the session was delivered: what follows must not overtake it.
    last_notification: Option<watch::Receiver<bool>>,
    /// The stream of what belongs to no call.
    listening: Option<AbortHandle>,
    is_closed: bool,
    /// Whether others have calls in the session too.
    is_shared: bool,
}

/// The stream of one call.
struct CallStream {
    task: Option<AbortHandle>,
    /// The last event that came on it, if events have names.
    last_event_id: Option<HeaderValue>,
    /// Dropped when the call is answered or has failed.
    _done: oneshot::Sender<()>,
}

impl HttpSession {
    fn lock(&self) -> MutexGuard<'_, HttpSessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn era(&self) -> Option<Era> {
        self.lock().negotiated_rules.map(|rules| rules.era)
    }

    /// Notes the last event of a call that was brought in.
    fn note_event(&self, call: CallKey, last: Option<&HeaderValue>) {
        if let Some(channel) = self.lock().calls.get_mut(&call) {
            channel.last_event_id = last.cloned();
        }
    }

    /// Ends the exchange of a call.
    fn cancel_call(&self, call: CallKey) {
        let channel = self.lock().calls.remove(&call);
        if let Some(task) = channel.and_then(|channel| channel.task) {
            task.abort();
        }
    }

    /// Notes which task an exchange runs in, unless it is over.
    fn set_task(&self, call: CallKey, task: AbortHandle) {
        if let Some(channel) = self.lock().calls.get_mut(&call) {
            channel.task = Some(task);
        }
    }

    fn resume_point(&self, call: CallKey) -> Option<ResumePoint> {
        let state = self.lock();
        let last_event = state.calls.get(&call)?.last_event_id.as_ref()?.to_str().ok()?.to_owned();
        // Elsewhere, a stream that broke is a cancelled call.
        state.negotiated_rules.filter(|rules| rules.era == Era::Handshake)?;
        let session = state.session.as_ref().and_then(|session| session.to_str().ok());
        Some(ResumePoint { session: session.map(str::to_owned), last_event })
    }

    /// The headers of a request of this session that carries no message.
    fn listen_headers(&self) -> HeaderList {
        let state = self.lock();
        let mut head = request_headers::listen_headers();
        if let Some(session) = &state.session {
            head.set(SESSION_NAME, session.clone());
        }
        if let Some(rules) = state.negotiated_rules.filter(|rules| rules.version_header) {
            head.set(VERSION_NAME, HeaderValue::from_static(rules.name));
        }
        head
    }

    /// A request that carries a frame, with headers that repeat what is in it.
    fn post_request(
        &self,
        state: &mut HttpSessionState,
        frame: &[u8],
        headers: Vec<HeaderField>,
    ) -> HttpRequest {
        let HttpSessionState { session, post_template: posting, .. } = state;
        let start = match posting {
            Some((of, start)) if of == session => start,
            _ => {
                let mut head = request_headers::post_headers();
                if let Some(session) = session {
                    head.set(SESSION_NAME, session.clone());
                }
                let start = self.target.request_template(Method::POST, head);
                &posting.insert((session.clone(), start)).1
            }
        };
        start.request(headers, Bytes::copy_from_slice(frame))
    }
}

impl HttpSessionState {
    /// Resolves when all notifications before were delivered, or will never be.
    fn notification_order(&mut self, is_notice: bool) -> exchange::NotificationOrder {
        let before =
            self.last_notification.as_ref().filter(|notified| !*notified.borrow()).cloned();
        let own = is_notice.then(|| {
            let (sender, receiver) = watch::channel(false);
            self.last_notification = Some(receiver);
            sender
        });
        (before, own)
    }
}

impl TransportHandle for HttpTransport {
    fn send(&self, frame: OutgoingFrame<'_>, headers: Vec<HeaderField>) -> Option<Exchange> {
        let inner = &self.inner;
        let mut state = inner.lock();
        if state.is_closed {
            return None;
        }
        let request = inner.post_request(&mut state, frame.text, headers);
        let is_stateless = state.negotiated_rules.is_some_and(|rules| rules.era == Era::Stateless);
        match frame.kind {
            FrameKind::Request(call) => {
                let (before, _) = state.notification_order(false);
                return Some(Box::pin(exchange::run_call(
                    Arc::clone(inner),
                    call,
                    request,
                    before,
                )));
            }
            // There, whoever closes the stream has said it.
            FrameKind::Notification { about: Some(_) } if is_stateless => {}
            FrameKind::Notification { about } => {
                let order = state.notification_order(about.is_none());
                tokio::spawn(exchange::send_notification(Arc::clone(inner), request, order));
            }
            FrameKind::Response => {
                tokio::spawn(exchange::send_notification(Arc::clone(inner), request, (None, None)));
            }
        }
        None
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn on_opened(&self, greeting: &NegotiationResult) {
        let mut state = self.inner.lock();
        state.negotiated_rules = Some(greeting.rules);
        if greeting.rules.era == Era::Stateless {
            state.session = None;
            return;
        }
        // Not before the stream is there.
        self.inner.inbox.set_notifications_available(false);
        if self.inner.target.has_streams() {
            let listening = tokio::spawn(listen::listen(Arc::downgrade(&self.inner)));
            state.listening = Some(listening.abort_handle());
        }
    }

    fn on_call_done(&self, call: CallKey) {
        // The exchange goes on to its end by itself, so that its connection can be used again.
        self.inner.lock().calls.remove(&call);
    }

    fn on_call_cancelled(&self, call: CallKey) {
        self.inner.cancel_call(call);
    }

    fn on_call_handed_over(&self, call: CallKey) {
        self.inner.lock().is_shared = true;
        self.inner.cancel_call(call);
    }

    fn resume_point(&self, call: CallKey) -> Option<ResumePoint> {
        self.inner.resume_point(call)
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let inner = Arc::clone(&self.inner);
        inner.close_all();
        Box::pin(async move { inner.end_session().await })
    }
}

impl HttpSession {
    /// Follows the stream that a call was answered with. In a task, since more than an answer may come: all of it is
    /// heard, whatever its caller is busy with.
    fn follow_stream(self: &Arc<Self>, call: CallKey, body: ResponseBody) {
        let (done, over) = oneshot::channel();
        // Entered first: the stream may be over before it is known here.
        self.lock().calls.insert(call, CallStream { task: None, last_event_id: None, _done: done });
        let task = tokio::spawn(exchange::follow_stream(Arc::clone(self), call, body, over));
        self.set_task(call, task.abort_handle());
        // The call may be over as well, and whoever ended it did not see the channel.
        if !self.inbox.is_call_open(call) {
            self.lock().calls.remove(&call);
        }
    }

    /// Ends all that is on its way.
    fn close_all(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let listening = state.listening.take();
        let calls = std::mem::take(&mut state.calls).into_values();
        let calls = calls.filter_map(|channel| channel.task);
        calls.chain(listening).for_each(|task| task.abort());
    }

    /// Tells the server that its session is over, once; many do not care (405).
    async fn end_session(&self) {
        let head = self.listen_headers();
        let session = {
            let mut state = self.lock();
            let is_own = !state.is_shared;
            state.session.take().filter(|_| is_own)
        };
        if session.is_some() {
            let request = self.target.request(Method::DELETE, head, Bytes::new());
            let _ = self.target.send_short(&request).await;
        }
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.inner.close_all();
        if let Ok(runtime) = Handle::try_current() {
            let inner = Arc::clone(&self.inner);
            runtime.spawn(async move { inner.end_session().await });
        }
    }
}
