//! The Streamable HTTP transport: each message is a POST, and each call has its own stream.

mod address;
pub(crate) mod conn;
mod exchange;
mod fault;
pub(crate) mod fetch;
mod legacy_sse;
mod listen;
mod probe;
mod resumed;

pub use crate::client::transport::http::conn::proxy::Proxies;
pub use address::HttpAddress;
pub use legacy_sse::LegacySseServer;
pub(crate) use probe::ProbeResponse;
pub use resumed::ResumedServer;

use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};

use bytes::Bytes;
use creole_proto::client::{CallKey, FrameKind, NegotiationResult, OutgoingFrame};
use creole_proto::http::request_headers::HeaderField;
use creole_proto::revision::{BrokenStream, Rules};
use http::{HeaderValue, Method};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::AbortHandle;

use crate::chain::BoxFuture;
use crate::client::transport::http::conn::request::{HeaderList, HttpRequest, RequestTemplate};
use crate::client::transport::http::conn::request::{SESSION_NAME, VERSION_NAME};
use crate::client::transport::http::conn::response_body::ResponseBody;
use crate::client::transport::{Exchange, Inbox, ResumePoint, Transport, TransportHandle};

/// A server that supports Streamable HTTP.
#[derive(Clone, Debug)]
pub struct HttpServer(HttpAddress);

impl HttpServer {
    /// The server at this address. All transports of clones of an address share its connections.
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

/// One session over HTTP. Dropping it aborts its requests in flight.
struct HttpTransport {
    inner: Arc<HttpSession>,
}

/// The state that the exchanges of a session share.
struct HttpSession {
    target: HttpAddress,
    inbox: Inbox,
    state: Mutex<HttpSessionState>,
}

#[derive(Default)]
struct HttpSessionState {
    /// The session id that the server assigned.
    session: Option<HeaderValue>,
    /// The template of the session's messages, once there was one.
    post_template: Option<(Option<HeaderValue>, Arc<RequestTemplate>)>,
    /// The negotiated rules.
    negotiated_rules: Option<&'static Rules>,
    /// Calls whose response is a stream.
    calls: BTreeMap<CallKey, CallStream>,
    /// Resolves when the last notification of the session was delivered: later messages must not overtake it.
    last_notification: Option<watch::Receiver<bool>>,
    /// The stream of messages that belong to no call.
    listening: Option<AbortHandle>,
    is_closed: bool,
    /// Whether other processes have calls in the session too.
    is_shared: bool,
}

/// The stream of one call.
struct CallStream {
    task: Option<AbortHandle>,
    /// The id of the last event on it, if events have ids.
    last_event_id: Option<HeaderValue>,
    /// Dropped when the call has its response or failed.
    _done: oneshot::Sender<()>,
}

impl HttpSession {
    fn lock(&self) -> MutexGuard<'_, HttpSessionState> {
        self.state.lock()
    }

    fn cancels_by_closing(&self) -> bool {
        self.lock().cancels_by_closing()
    }

    /// Records the last event of a call that was delivered.
    fn note_event(&self, call: CallKey, last: Option<&HeaderValue>) {
        if let Some(channel) = self.lock().calls.get_mut(&call) {
            channel.last_event_id = last.cloned();
        }
    }

    /// Aborts the exchange of a call.
    fn cancel_call(&self, call: CallKey) {
        let channel = self.lock().calls.remove(&call);
        if let Some(task) = channel.and_then(|channel| channel.task) {
            task.abort();
        }
    }

    /// Records the task of an exchange, unless the exchange is over.
    fn set_task(&self, call: CallKey, task: AbortHandle) {
        if let Some(channel) = self.lock().calls.get_mut(&call) {
            channel.task = Some(task);
        }
    }

    fn resume_point(&self, call: CallKey) -> Option<ResumePoint> {
        let state = self.lock();
        let last_event = state.calls.get(&call)?.last_event_id.as_ref()?.to_str().ok()?.to_owned();
        state.negotiated_rules.filter(|rules| rules.broken_stream == BrokenStream::Resumable)?;
        let session = state.session.as_ref().and_then(|session| session.to_str().ok());
        Some(ResumePoint { session: session.map(str::to_owned), last_event })
    }

    /// The headers of a request of this session that carries no message.
    fn listen_headers(&self) -> HeaderList {
        let state = self.lock();
        let mut head = HeaderList::of_listen();
        if let Some(session) = &state.session {
            head.set(SESSION_NAME, session.clone());
        }
        if let Some(rules) = state.negotiated_rules.filter(|rules| rules.version_header) {
            head.set(VERSION_NAME, HeaderValue::from_static(rules.name));
        }
        head
    }

    /// A request that carries a frame, with its mirrored headers.
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
                let mut head = HeaderList::of_post();
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
    /// Whether the end of a call's stream cancels the call.
    fn cancels_by_closing(&self) -> bool {
        self.negotiated_rules.is_some_and(|rules| rules.broken_stream == BrokenStream::Cancels)
    }

    /// Resolves when all earlier notifications were delivered, or never will be.
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
            // Closing the stream has the same effect.
            FrameKind::Notification { about: Some(_) } if state.cancels_by_closing() => {}
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
        if !greeting.rules.has_sessions {
            state.session = None;
            return;
        }
        // Not before the stream is open.
        self.inner.inbox.set_notifications_available(false);
        if self.inner.target.has_streams() {
            let listening = tokio::spawn(listen::listen(Arc::downgrade(&self.inner)));
            state.listening = Some(listening.abort_handle());
        }
    }

    fn on_call_done(&self, call: CallKey) {
        // The exchange continues to its end in its own task, so that its connection can be reused.
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
    /// Follows the stream that is the response to a call. It runs in a task, since the stream may carry more than the
    /// response: all of it is delivered, even while the caller does not poll.
    fn follow_stream(self: &Arc<Self>, call: CallKey, body: ResponseBody) {
        let (done, over) = oneshot::channel();
        // Inserted first: the stream may be over before the task is known here.
        self.lock().calls.insert(call, CallStream { task: None, last_event_id: None, _done: done });
        let task = tokio::spawn(exchange::follow_stream(Arc::clone(self), call, body, over));
        self.set_task(call, task.abort_handle());
        // The call may be over too, and its end did not see the stream.
        if !self.inbox.is_call_open(call) {
            self.lock().calls.remove(&call);
        }
    }

    /// Aborts everything in flight.
    fn close_all(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let listening = state.listening.take();
        let calls = std::mem::take(&mut state.calls).into_values();
        let calls = calls.filter_map(|channel| channel.task);
        calls.chain(listening).for_each(|task| task.abort());
    }

    /// Notifies the server once that its session is over; many do not support that (405).
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
