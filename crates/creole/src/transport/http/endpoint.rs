//! One MCP endpoint: every method, every revision, on one path.

mod post;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use creole_proto::dialect::Dialect;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::mcp_headers::{LAST_EVENT_ID_HEADER, SESSION_ID_HEADER};
use creole_proto::http::parse_accept;
use creole_proto::revision::Rules;
use creole_proto::wire::{Fields, ScanLimits};
use http::header::{ACCEPT, ALLOW, HeaderName, HeaderValue};
use http::{Method, Request, Response};
use tokio::sync::watch;

use super::answer::{Answer, Peer};
use super::body::BodyLimits;
use super::conversation::{COMMON, Conversation, First};
use super::hub::Hub;
use super::incoming::Incoming;
use super::old_sse;
use super::reply::{self, Body};
use super::request::{Head, Headers};
use super::session::{Place, Session};
use super::sessions::{Holder, Sessions};
use super::stream::Stream;
use crate::auth::{LOCAL_PRINCIPAL, Principal};
use crate::budget::Budget;
use crate::call::Origin;
use crate::peers::Replicas;
use crate::server::Service;
use crate::state::{State, StateError};

/// How an endpoint is served.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of the transport of 2024-11-05, if it is served.
    pub old_sse: Option<String>,
    /// How large a body may be, and how long it may take.
    pub body: BodyLimits,
    /// How much memory bodies may take together.
    pub budget: Budget,
    /// Sessions at the same time. Once there are as many, those of the caller that has the most make room for others.
    pub max_sessions: usize,
    /// How long a session may be unused before it is forgotten.
    pub session_idle: Duration,
    /// Where sessions are written down, so that they outlive the process.
    pub state: State,
    /// The processes that share the state, where there may be several: messages may come to any of them.
    pub peers: Option<Replicas>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            old_sse: Some("/sse".to_owned()),
            body: BodyLimits::default(),
            budget: Budget::of_process(),
            max_sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            state: State::default(),
            peers: None,
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
    /// Who nobody has asked for a name.
    unnamed: Arc<str>,
    /// Told when streams are to end.
    draining: watch::Sender<bool>,
}

const SESSION_HEADER: HeaderName = HeaderName::from_static(SESSION_ID_HEADER);

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
    /// What is kept cannot be reached.
    Unkept,
}

impl From<StateError> for Refused {
    fn from(error: StateError) -> Self {
        tracing::error!(%error, "sessions cannot be kept");
        Self::Unkept
    }
}

impl Endpoint {
    /// An endpoint that speaks for the service.
    pub fn new(service: Service, settings: Settings) -> Self {
        let hub = Hub::new(service.clone());
        let (most, idle) = (settings.max_sessions, settings.session_idle);
        let (state, peers) = (settings.state.clone(), settings.peers.clone());
        let sessions = Sessions::new(service.clone(), state, peers, most, idle);
        let unnamed = LOCAL_PRINCIPAL.into();
        let draining = watch::Sender::new(false);
        Self { shared: Arc::new(Shared { service, settings, hub, sessions, unnamed, draining }) }
    }

    /// Answers one request. Host, origin and credentials are the caller's to check; whom it found is a [`Principal`]
    /// among the extensions, and where the request came from is a [`Peer`].
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Principal>().cloned();
        let peer = head.extensions.get::<Peer>().map(|peer| peer.0.ip());
        let mut head = Head::from(head);
        head.client = peer;
        self.answer_to(&mut head, body, caller).await
    }

    async fn answer_to<B>(
        &self,
        head: &mut Head,
        body: B,
        caller: Option<Principal>,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let unnamed = || Arc::clone(&self.shared.unnamed);
        let principal = caller.map_or_else(unnamed, |caller| caller.id);
        let is_old = self.shared.settings.old_sse.as_deref() == Some(head.uri.path());
        let response = match head.method {
            Method::POST => self.post(head, body, principal, is_old).await,
            Method::GET if is_old => {
                Box::pin(old_sse::open(self, head.uri.path(), principal, head.client)).await
            }
            Method::GET => self.get(head, &principal).await,
            Method::DELETE if !is_old => self.delete(head, &principal).await,
            _ => self.not_allowed(is_old),
        };
        reply::complete(response, &mut head.headers)
    }

    /// Ends every stream of notifications; calls go on to their ends.
    pub fn drain(&self) {
        self.shared.draining.send_replace(true);
        self.shared.hub.drain();
        for session in self.shared.sessions.all() {
            session.conversation().end_common();
        }
    }

    /// The hub, which works once it is needed.
    fn hub(&self) -> &Arc<Hub> {
        self.shared.hub.start(&self.shared.sessions);
        &self.shared.hub
    }

    /// The processes that share the state, where there may be several.
    pub(super) fn peers(&self) -> Option<&Replicas> {
        self.shared.settings.peers.as_ref()
    }

    /// How much a message may be.
    pub(super) fn wire_limits(&self) -> ScanLimits {
        self.shared.service.profile().limits.scan
    }

    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.shared.sessions
    }

    /// Makes a session, if there is room for one; it has to be [kept](Self::keep_session).
    pub(super) fn open_session(
        &self,
        principal: Arc<str>,
        client: Option<IpAddr>,
        single: bool,
    ) -> Result<Arc<Session>, Refused> {
        let holder = Holder::new(&principal, client);
        if !self.shared.sessions.has_room(&holder) {
            return Err(Refused::Full);
        }
        let (service, peers) = (self.shared.service.clone(), self.peers().cloned());
        let session = Session::new(service, principal, holder, single, peers);
        session.ok_or(Refused::NoRandomness)
    }

    /// Keeps a session from now on, if there is room for it.
    pub(super) async fn keep_session(&self, session: &Arc<Session>) -> Result<(), Refused> {
        session.listen(|| self.hub());
        self.shared.sessions.insert(Arc::clone(session)).await.map(drop)
    }

    /// Says why there is no session.
    pub(super) fn refused(&self, refused: Refused) -> Response<Body> {
        let why = match refused {
            Refused::Full => {
                let why = "too many sessions are open; end some with DELETE, or try later";
                return reply::refusal(503, why);
            }
            Refused::NoRandomness => {
                return reply::refusal(500, "the system has no randomness for a session id");
            }
            Refused::Unkept => {
                return reply::refusal(503, "sessions cannot be kept at the moment; try later");
            }
            Refused::Unnamed => "the header Mcp-Session-Id is missing; send initialize first",
            Refused::Unknown => "there is no such session; send initialize",
        };
        let status = if refused == Refused::Unknown { 404 } else { 400 };
        let rules = self.dialect().base_rules();
        self.refuse(None, &Fault::new(FaultKind::InvalidRequest, why), rules, status)
    }

    async fn get(&self, head: &Head, principal: &Arc<str>) -> Response<Body> {
        let headers = &head.headers;
        if self.is_sessionless() {
            return self.not_allowed(false);
        }
        if !parse_accept(joined(headers, ACCEPT.as_str()).as_deref()).events {
            return reply::refusal(406, "the stream is text/event-stream");
        }
        let session = match self.session(headers, principal, head.client).await {
            Ok(session) => session,
            Err(refused) => return self.refused(refused),
        };
        let last =
            headers.get(LAST_EVENT_ID_HEADER).and_then(|value| std::str::from_utf8(value).ok());
        let last = last.and_then(Place::parse);
        if let (Some(last), Some(_)) = (last, self.peers()) {
            let draining = self.shared.draining.subscribe();
            if let Some(rest) = Box::pin(session.elsewhere(last, draining)).await {
                return rest;
            }
        }
        session.get(last)
    }

    async fn delete(&self, head: &Head, principal: &Arc<str>) -> Response<Body> {
        if self.is_sessionless() {
            return self.not_allowed(false);
        }
        match self.session(&head.headers, principal, head.client).await {
            Ok(session) => match self.shared.sessions.end(&session).await {
                Ok(()) => reply::empty(204),
                Err(error) => self.refused(error.into()),
            },
            Err(refused) => self.refused(refused),
        }
    }

    /// The session that the request names.
    async fn session(
        &self,
        headers: &Headers,
        principal: &Arc<str>,
        client: Option<IpAddr>,
    ) -> Result<Arc<Session>, Refused> {
        let id = headers.get(SESSION_ID_HEADER).ok_or(Refused::Unnamed)?;
        let id = std::str::from_utf8(id).map_err(|_| Refused::Unknown)?;
        let sessions = &self.shared.sessions;
        let session = match sessions.live(id, principal) {
            Some(found) => found,
            None => Box::pin(sessions.find(id, principal, client)).await?,
        };
        let session = session.ok_or(Refused::Unknown)?;
        session.listen(|| self.hub());
        Ok(session)
    }

    /// Writes a session down before its client hears of what changed.
    async fn saved(&self, session: &Session, response: Response<Body>) -> Response<Body> {
        if self.shared.sessions.is_saved(session) {
            return response;
        }
        match Box::pin(self.shared.sessions.save(session)).await {
            Ok(()) => response,
            Err(error) => self.refused(error.into()),
        }
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
        let unnamed = Origin::sessionless(Arc::clone(&self.shared.unnamed));
        let conversation = Conversation::new(service, unnamed, Stream::passing());
        conversation.refuse(fields, fault, rules);
        let reader = conversation.attach(COMMON, None);
        match reader.map(|reader| conversation.first_now(COMMON, reader, true)) {
            Some(First::Answer(text, _)) => reply::json(status, text),
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

/// A header as it was sent; one that was sent several times is a list (RFC 9110, 5.3).
fn joined<'a>(headers: &'a Headers, name: &'a str) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.all(name);
    let first = values.next()?;
    let Some(second) = values.next() else { return Some(Cow::Borrowed(first)) };
    let all: Vec<_> = [first, second].into_iter().chain(values).collect();
    Some(Cow::Owned(all.join(&b", "[..])))
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

impl Answer for Endpoint {
    type Body = Body;

    fn answer(
        &self,
        head: &mut Head,
        body: Incoming,
        caller: Option<Principal>,
    ) -> impl Future<Output = Response<Body>> {
        self.answer_to(head, body, caller)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
