//! One MCP endpoint: every method, every revision, on one path.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::dialect::Dialect;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::head::{LAST_EVENT, METHOD, NAME, SESSION, VERSION};
use creole_proto::http::{Accepted, Conversation as Belongs, EventId, Head, accepted, is_json};
use creole_proto::http::{check_alone, conversation, status};
use creole_proto::method::Method as Mcp;
use creole_proto::revision::{Era, Revision, Rules};
use creole_proto::wire::{Fields, Frame, Object, ScanError, scan, unquote};
use http::header::{ACCEPT, ALLOW, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response};

use super::conversation::{COMMON, Conversation, First};
use super::exchange::Exchange;
use super::hub::Hub;
use super::intake::{Unread, whole};
use super::old_sse;
use super::reply::{self, Body};
use super::session::Session;
use super::sessions::Sessions;
use super::stream::Stream;
use crate::server::Service;

/// How an endpoint is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of the transport of 2024-11-05, if it is served.
    pub old_sse: Option<String>,
    /// The longest body that is read, in bytes.
    pub max_body: usize,
    /// Sessions at the same time.
    pub max_sessions: usize,
    /// How long a session may be unused before it is forgotten.
    pub session_idle: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            old_sse: Some("/sse".to_owned()),
            max_body: 1024 * 1024,
            max_sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
        }
    }
}

/// One MCP endpoint; clones share it.
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

struct Shared {
    service: Service,
    settings: Settings,
    hub: Arc<Hub>,
    sessions: Arc<Sessions>,
}

/// Who asks, when nobody was asked who they are.
const ANYBODY: &str = "local";

/// Why there is no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// There are too many.
    Full,
    /// No id can be made.
    NoRandomness,
    /// The request names none.
    Unnamed,
    /// The one it names does not exist, or is somebody else's.
    Unknown,
}

/// A POST whose body was read.
struct Post<'a> {
    headers: &'a HeaderMap,
    accepted: Accepted,
    principal: Arc<str>,
    scanned: Result<Frame<'a>, ScanError>,
}

impl Endpoint {
    /// An endpoint that speaks for the service.
    pub fn new(service: Service, settings: Settings) -> Self {
        let hub = Hub::new(service.registry().clone());
        let sessions = Sessions::new(settings.max_sessions, settings.session_idle);
        Self { shared: Arc::new(Shared { service, settings, hub, sessions }) }
    }

    /// Answers one request. Host, origin and credentials are the caller's to check.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let principal = principal_of(&request);
        let is_old = self.shared.settings.old_sse.as_deref() == Some(request.uri().path());
        match *request.method() {
            Method::POST => self.post(request, principal, is_old).await,
            Method::GET if is_old => old_sse::open(self, request.uri().path(), principal),
            Method::GET => self.get(request.headers(), &principal),
            Method::DELETE if !is_old => self.delete(request.headers(), &principal),
            _ => self.not_allowed(is_old),
        }
    }

    /// Ends every stream of notifications; calls go on to their ends.
    pub fn drain(&self) {
        self.shared.hub.drain();
        for session in self.shared.sessions.all() {
            session.conversation().end_common();
        }
    }

    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.shared.sessions
    }

    /// Makes a session, if there is room for one; it has to be [kept](Self::keep_session).
    pub(super) fn open_session(
        &self,
        principal: Arc<str>,
        single: bool,
    ) -> Result<Arc<Session>, Refused> {
        if !self.shared.sessions.has_room() {
            return Err(Refused::Full);
        }
        let session = Session::new(self.shared.service.clone(), principal, single);
        session.ok_or(Refused::NoRandomness)
    }

    /// Keeps a session from now on; tells whether there was room.
    pub(super) fn keep_session(&self, session: &Arc<Session>) -> bool {
        self.shared.hub.start(&self.shared.sessions);
        session.listen(&self.shared.hub);
        self.shared.sessions.insert(Arc::clone(session))
    }

    /// Says why there is no session.
    pub(super) fn refused(&self, refused: Refused) -> Response<Body> {
        let why = match refused {
            Refused::Full => return reply::refusal(503, "too many sessions are open; try later"),
            Refused::NoRandomness => {
                return reply::refusal(500, "the system has no randomness for a session id");
            }
            Refused::Unnamed => "the header Mcp-Session-Id is missing; send initialize first",
            Refused::Unknown => "there is no such session; send initialize",
        };
        let status = if refused == Refused::Unknown { 404 } else { 400 };
        let rules = self.dialect().base_rules();
        self.refuse(None, &Fault::new(FaultKind::InvalidRequest, why), rules, status)
    }

    async fn post<B>(
        &self,
        request: Request<B>,
        principal: Arc<str>,
        is_old: bool,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let (parts, body) = request.into_parts();
        let headers = &parts.headers;
        if !is_json(headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes)) {
            return reply::refusal(415, "the body must be application/json in UTF-8");
        }
        let accepted = accepted(joined(headers, &ACCEPT).as_deref());
        if !accepted.json && !accepted.events {
            return reply::refusal(406, "answers are application/json or text/event-stream");
        }
        let body = match whole(body, self.shared.settings.max_body).await {
            Ok(body) => body,
            Err(unread) => return self.unread(unread),
        };
        let scanned = scan(&body, &self.shared.service.profile().limits.wire);
        if is_old {
            let scanned = scanned.as_ref();
            return old_sse::message(self, &parts.uri, &principal, scanned).await;
        }
        self.message(Post { headers, accepted, principal, scanned }).await
    }

    /// A body that is not read leaves the connection in the middle of it, so that ends.
    fn unread(&self, unread: Unread) -> Response<Body> {
        let mut response = match unread {
            Unread::Broken => reply::refusal(400, "the body broke off"),
            Unread::TooLong => {
                let most = self.shared.settings.max_body;
                reply::refusal(413, &format!("the body is longer than {most} bytes"))
            }
        };
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }

    async fn message(&self, post: Post<'_>) -> Response<Body> {
        let dialect = &self.shared.service.profile().dialect;
        let header = |name: &'static str| joined(post.headers, &HeaderName::from_static(name));
        let (version, method, name) = (header(VERSION), header(METHOD), header(NAME));
        let head = Head {
            version: version.as_deref(),
            method: method.as_deref(),
            name: name.as_deref(),
            has_session: post.headers.contains_key(SESSION),
        };
        let Ok(frame) = &post.scanned else {
            return self.alone(&post, dialect.base_rules()).await;
        };
        match conversation(frame, &head, dialect) {
            Err(fault) => self.refuse(None, &fault, dialect.base_rules(), 400),
            Ok(Belongs::Alone) => self.checked(&post, frame, &head).await,
            Ok(Belongs::Sessionless) => self.alone(&post, dialect.base_rules()).await,
            Ok(Belongs::Opening) => self.open(&post).await,
            Ok(Belongs::Session) => self.in_session(&post, frame).await,
        }
    }

    /// A request that stands alone has headers that repeat what it says.
    async fn checked(&self, post: &Post<'_>, frame: &Frame<'_>, head: &Head<'_>) -> Response<Body> {
        let rules = Revision::newest(Era::Stateless).rules();
        let Frame::One(fields) = frame else { return reply::empty(400) };
        let dialect = &self.shared.service.profile().dialect;
        let checked = check_alone(fields, head, dialect)
            .and_then(|method| self.check_mirrors(method, fields, post.headers));
        match checked {
            Ok(()) => self.alone(post, rules).await,
            Err(fault) => {
                // What is missing in `_meta` is told with 400, other parameters with 200.
                let status = match fault.kind {
                    FaultKind::InvalidParams => 400,
                    kind => status(Some(kind), rules),
                };
                self.refuse(Some(fields), &fault, rules, status)
            }
        }
    }

    /// Checks the headers that a tool's schema asks for.
    fn check_mirrors(
        &self,
        method: Option<Mcp>,
        fields: &Fields<'_>,
        headers: &HeaderMap,
    ) -> Result<(), Fault> {
        if method != Some(Mcp::CallTool) {
            return Ok(());
        }
        let tool = fields.inside.name.and_then(unquote).unwrap_or_default();
        let Some(mirrors) = self.shared.service.registry().mirrors(&tool) else { return Ok(()) };
        let arguments = fields.inside.arguments.and_then(Object::new).unwrap_or(Object::EMPTY);
        for mirror in mirrors.iter() {
            let values = headers.get_all(&mirror.header).iter().map(HeaderValue::as_bytes);
            let values: Vec<_> = values.collect();
            let value = (!values.is_empty()).then(|| values.join(&b", "[..]));
            mirror.check(arguments, value.as_deref())?;
        }
        Ok(())
    }

    /// Serves a message that needs nothing but itself.
    async fn alone(&self, post: &Post<'_>, rules: &'static Rules) -> Response<Body> {
        let service = self.shared.service.clone();
        let principal = Arc::clone(&post.principal);
        let conversation = Conversation::new(service, principal, Stream::passing());
        let started = conversation.receive(post.scanned.as_ref(), COMMON);
        self.shared.hub.start(&self.shared.sessions);
        match Exchange::begin(conversation, started, &self.shared.hub) {
            Some(exchange) => exchange.answer(post.accepted.events, rules).await,
            None => reply::empty(202),
        }
    }

    /// Opens a session with the answer to `initialize`.
    async fn open(&self, post: &Post<'_>) -> Response<Body> {
        let session = match self.open_session(Arc::clone(&post.principal), false) {
            Ok(session) => session,
            Err(refused) => return self.refused(refused),
        };
        let mut response = session.post(post.scanned.as_ref(), post.accepted.events).await;
        if session.conversation().is_opened() {
            if !self.keep_session(&session) {
                return self.refused(Refused::Full);
            }
            if let Ok(id) = HeaderValue::from_str(session.id()) {
                response.headers_mut().insert(HeaderName::from_static(SESSION), id);
            }
        }
        response
    }

    async fn in_session(&self, post: &Post<'_>, frame: &Frame<'_>) -> Response<Body> {
        if !post.headers.contains_key(SESSION) && wants_answer(frame) {
            // Who has not opened a session is told so in the words of the dialect.
            return self.alone(post, self.dialect().base_rules()).await;
        }
        let session = match self.session(post.headers, &post.principal) {
            Ok(session) => session,
            Err(refused) => return self.refused(refused),
        };
        if let Frame::One(fields) = frame
            && fields.method.is_none()
            && (fields.result.is_some() || fields.error.is_some())
            && !session.conversation().awaits(fields)
        {
            let fault = Fault::new(FaultKind::InvalidRequest, "this answers no open question");
            return self.refuse(None, &fault, session.conversation().rules(), 400);
        }
        session.post(post.scanned.as_ref(), post.accepted.events).await
    }

    fn get(&self, headers: &HeaderMap, principal: &str) -> Response<Body> {
        if self.is_sessionless() {
            return self.not_allowed(false);
        }
        if !accepted(joined(headers, &ACCEPT).as_deref()).events {
            return reply::refusal(406, "the stream is text/event-stream");
        }
        let session = match self.session(headers, principal) {
            Ok(session) => session,
            Err(refused) => return self.refused(refused),
        };
        let last = headers.get(LAST_EVENT).and_then(|value| value.to_str().ok());
        session.get(last.and_then(EventId::parse))
    }

    fn delete(&self, headers: &HeaderMap, principal: &str) -> Response<Body> {
        if self.is_sessionless() {
            return self.not_allowed(false);
        }
        match self.session(headers, principal) {
            Ok(session) => {
                self.shared.sessions.remove(session.id());
                session.close();
                reply::empty(204)
            }
            Err(refused) => self.refused(refused),
        }
    }

    /// The session that the request names.
    fn session(&self, headers: &HeaderMap, principal: &str) -> Result<Arc<Session>, Refused> {
        let id = headers.get(SESSION).ok_or(Refused::Unnamed)?;
        let found = id.to_str().ok().and_then(|id| self.shared.sessions.find(id, principal));
        found.ok_or(Refused::Unknown)
    }

    /// Refuses a message in the words of the protocol.
    fn refuse(
        &self,
        fields: Option<&Fields<'_>>,
        fault: &Fault,
        rules: &'static Rules,
        status: u16,
    ) -> Response<Body> {
        let service = self.shared.service.clone();
        let conversation = Conversation::new(service, ANYBODY.into(), Stream::passing());
        conversation.refuse(fields, fault, rules);
        match conversation.take_answer() {
            First::Answer(text, _) => reply::json(status, text),
            _ => reply::empty(status),
        }
    }

    fn not_allowed(&self, is_old: bool) -> Response<Body> {
        let allowed = match () {
            () if is_old => "GET, POST",
            () if self.is_sessionless() => "POST",
            () => "GET, POST, DELETE",
        };
        let mut response = reply::refusal(405, &format!("this endpoint takes {allowed}"));
        response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        response
    }

    fn is_sessionless(&self) -> bool {
        self.dialect().is_sessionless()
    }

    fn dialect(&self) -> &Dialect {
        &self.shared.service.profile().dialect
    }
}

/// Whether somebody waits for an answer to any of it.
fn wants_answer(frame: &Frame<'_>) -> bool {
    let is_request = |fields: &Fields<'_>| fields.method.is_some() && fields.id.is_some();
    match frame {
        Frame::One(fields) => is_request(fields),
        Frame::Batch(all) => all.is_empty() || all.iter().any(is_request),
    }
}

/// Whoever the layer that authenticates has found, if there is one.
fn principal_of<B>(_request: &Request<B>) -> Arc<str> {
    ANYBODY.into()
}

/// A header as it was sent; one that was sent several times is a list (RFC 9110, 5.3).
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<Vec<u8>> {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let mut joined = values.next()?.to_vec();
    for value in values {
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(value);
    }
    Some(joined)
}

impl<B> tower_service::Service<Request<B>> for Endpoint
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.answer(request).await) })
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
