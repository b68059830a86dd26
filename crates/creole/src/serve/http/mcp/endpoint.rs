//! The MCP endpoint: every method of every revision on one path.

pub(crate) mod inspect;
mod legacy_sse;
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

use crate::auth::{Principal, ProtectedResource};
use crate::budget::Budget;
use crate::call::Origin;
use crate::chain::BoxFuture;
use crate::host::COMMON_STREAM;
use crate::replicas::Replicas;
use crate::serve::http::listener::Listener;
use crate::serve::http::mcp::change_fanout::ChangeFanout;
use crate::serve::http::mcp::http_caller::HttpCaller;
use crate::serve::http::mcp::response::{AtDeadline, McpBody};
use crate::serve::http::mcp::session::{EventLocation, QuotaHolder, Session};
use crate::serve::http::mcp::sessions::{SessionError, Sessions};
use crate::serve::http::mcp::stream::ResponseStream;
use crate::serve::http::mcp::streams::{FirstReply, HttpHost};
use crate::serve::http::mcp::{background, response};
use crate::serve::http::web::body::BodyLimits;
use crate::serve::http::web::drain::{Drain, DrainStage};
use crate::serve::http::web::handler::{HttpHandler, PeerAddress};
use crate::serve::http::web::incoming::IncomingBody;
use crate::serve::http::web::request::{RequestHead, RequestHeaders};
use crate::serve::http::web::router::Router;
use crate::server::Service;
use crate::state::State;

/// Settings of an endpoint.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointSettings {
    /// The path of the HTTP+SSE transport of 2024-11-05, if it is served.
    pub legacy_sse_path: Option<String>,
    /// Limits on the size and duration of a body.
    pub body: BodyLimits,
    /// The memory budget that all bodies share.
    #[doc(hidden)]
    pub budget: Budget,
    /// Maximum number of sessions. Beyond it, the caller with the most sessions loses one for each new session.
    pub max_sessions: usize,
    /// How long a session may be unused before it expires.
    pub session_idle: Duration,
    /// The shutdown of the server. From its begin on, no session opens.
    pub drain: Drain,
    /// The state that sessions are saved in, so that they outlive the process.
    pub state: State,
    /// The replicas that share the state, if there may be several: a message may arrive at any of them.
    #[doc(hidden)]
    pub replicas: Option<Replicas>,
}

impl Default for EndpointSettings {
    fn default() -> Self {
        Self {
            legacy_sse_path: Some("/sse".to_owned()),
            body: BodyLimits::default(),
            budget: Budget::of_process(),
            max_sessions: 10_000,
            session_idle: Duration::from_secs(30 * 60),
            drain: Drain::new(),
            state: State::default(),
            replicas: None,
        }
    }
}

/// One MCP endpoint; clones share it.
#[derive(Clone)]
pub struct McpEndpoint {
    shared: Arc<EndpointShared>,
}

struct EndpointShared {
    service: Service,
    settings: EndpointSettings,
    changes: Arc<ChangeFanout>,
    sessions: Arc<Sessions>,
    /// The principal of callers without authentication.
    anonymous: Principal,
    /// Signals that streams must end.
    draining: watch::Sender<bool>,
}

const SESSION_HEADER: HeaderName = HeaderName::from_static(SESSION_ID_HEADER);

impl From<Service> for McpEndpoint {
    /// An endpoint with the default settings.
    fn from(service: Service) -> Self {
        Self::new(service, EndpointSettings::default())
    }
}

impl McpEndpoint {
    /// An endpoint for the service.
    pub fn new(service: Service, settings: EndpointSettings) -> Self {
        let fanout = ChangeFanout::new(service.clone());
        let (max, idle) = (settings.max_sessions, settings.session_idle);
        let (state, peers) = (settings.state.clone(), settings.replicas.clone());
        let sessions = Sessions::new(service.clone(), state, peers, max, idle);
        let unnamed = Principal::local();
        let draining = watch::Sender::new(false);
        Self {
            shared: Arc::new(EndpointShared {
                service,
                settings,
                changes: fanout,
                sessions,
                anonymous: unnamed,
                draining,
            }),
        }
    }

    /// Serves the connections of a listener, as [`Listener::serve`] does for any handler.
    ///
    /// The future is boxed so that the code of all connections is compiled in this crate. Otherwise it is compiled in
    /// the crate that awaits it, with the level of optimisation of that crate.
    pub fn serve(listener: Listener, router: Router<Self>) -> BoxFuture<'static, ()> {
        Box::pin(listener.serve(router))
    }

    /// Handles one request. The caller must check host, origin and credentials before. It passes the [`Principal`], the
    /// [`PeerAddress`] and, for an access token, the [`ProtectedResource`] as extensions of the request.
    #[doc(hidden)]
    pub async fn handle<B>(&self, request: Request<B>) -> Response<McpBody>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let (head, body) = request.into_parts();
        let caller = head.extensions.get::<Principal>().cloned();
        let peer = head.extensions.get::<PeerAddress>().map(|peer| peer.0.ip());
        let resource = head.extensions.get::<Arc<ProtectedResource>>().cloned();
        let mut head = RequestHead::from(head);
        (head.client, head.resource) = (peer, resource);
        self.handle_request(&mut head, body, caller).await
    }

    async fn handle_request<B>(
        &self,
        head: &mut RequestHead,
        body: B,
        caller: Option<Principal>,
    ) -> Response<McpBody>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let principal = caller.unwrap_or_else(|| self.shared.anonymous.clone());
        let is_old = self.shared.settings.legacy_sse_path.as_deref() == Some(head.uri.path());
        let response = match head.method {
            Method::POST => self.post(head, body, &principal, is_old).await,
            Method::GET if is_old => {
                Box::pin(legacy_sse::open_stream(self, head, &principal)).await
            }
            Method::GET => self.get(head, &principal).await,
            Method::DELETE if !is_old => self.delete(head, &principal).await,
            _ => self.method_not_allowed(is_old),
        };
        let response = response::counted(response, &self.shared.service);
        response::set_json_headers(response, &mut head.headers)
    }

    /// Ends every notification stream; calls continue to their ends.
    pub fn drain(&self) {
        self.shared.draining.send_replace(true);
        self.shared.changes.drain();
        for session in self.shared.sessions.all() {
            session.host().end_common();
        }
    }

    /// The fan-out of changes, which starts when it is first needed.
    fn changes(&self) -> &Arc<ChangeFanout> {
        let (fanout, sessions) = (&self.shared.changes, &self.shared.sessions);
        fanout.start(|changes| {
            let (fanout, sessions) = (Arc::downgrade(fanout), Arc::downgrade(sessions));
            tokio::spawn(background::run(changes, fanout, sessions));
        });
        &self.shared.changes
    }

    /// The replicas that share the state, if there may be several.
    pub(crate) fn replicas(&self) -> Option<&Replicas> {
        self.shared.settings.replicas.as_ref()
    }

    /// Limits on the size of a message.
    pub(crate) fn wire_limits(&self) -> ScanLimits {
        self.shared.service.profile().limits.scan
    }

    pub(crate) fn sessions(&self) -> &Arc<Sessions> {
        &self.shared.sessions
    }

    /// Creates a session, if there is room; it must then be [stored](Self::store_session).
    pub(crate) fn open_session(
        &self,
        principal: &Principal,
        client: Option<IpAddr>,
        single: bool,
    ) -> Result<Arc<Session>, SessionError> {
        if self.shared.settings.drain.stage() != DrainStage::Serving {
            return Err(SessionError::Leaving);
        }
        let holder = QuotaHolder::new(principal, client);
        if !self.shared.sessions.has_room(&holder) {
            return Err(SessionError::Full);
        }
        let (service, peers) = (self.shared.service.clone(), self.replicas().cloned());
        let session = Session::new(service, principal, holder, single, peers);
        session.ok_or(SessionError::NoRandomness)
    }

    /// Stores a new session, if there is room.
    pub(crate) async fn store_session(&self, session: &Arc<Session>) -> Result<(), SessionError> {
        session.listen(|| self.changes());
        self.shared.sessions.insert(Arc::clone(session)).await.map(drop)
    }

    /// The response with the reason why there is no session.
    pub(crate) fn session_error_response(&self, refused: SessionError) -> Response<McpBody> {
        let reason = match refused {
            SessionError::Full => {
                let reason = "too many sessions are open; end one with DELETE, or try again later";
                return response::error_response(503, reason);
            }
            SessionError::Leaving => {
                let reason = "the server shuts down and opens no session; connect again";
                return response::error_response(503, reason);
            }
            SessionError::NoRandomness => {
                return response::error_response(
                    500,
                    "the system provides no random bytes for a session id",
                );
            }
            SessionError::StateUnavailable => {
                let reason = "the session store is not available; try again later";
                return response::state_unavailable(reason);
            }
            SessionError::Missing => "the header Mcp-Session-Id is missing; send initialize first",
            SessionError::Unknown => "unknown session; send initialize",
        };
        let status = if refused == SessionError::Unknown { 404 } else { 400 };
        let rules = self.dialect().base_rules();
        self.fault_response(None, &Fault::new(FaultKind::InvalidRequest, reason), rules, status)
    }

    async fn get(&self, head: &RequestHead, principal: &Principal) -> Response<McpBody> {
        let headers = &head.headers;
        if self.is_sessionless() {
            return self.method_not_allowed(false);
        }
        if !parse_accept(joined_header(headers, ACCEPT.as_str()).as_deref()).events {
            return response::error_response(
                406,
                "this endpoint sends text/event-stream; accept it",
            );
        }
        let session = match self.find_session(headers, principal, head.client).await {
            Ok(session) => session,
            Err(refused) => return self.session_error_response(refused),
        };
        if *self.shared.draining.borrow() {
            session.host().end_common();
        }
        if self.replicas().is_some() {
            // Clients open the stream after the handshake, whose end another replica may have received.
            session.host().confirm_elsewhere();
            // So may have been its subscriptions.
            Box::pin(session.refresh()).await;
        }
        let deadline = HttpCaller::new(principal, head).stream_deadline();
        let last =
            headers.get(LAST_EVENT_ID_HEADER).and_then(|value| std::str::from_utf8(value).ok());
        let last = last.and_then(EventLocation::parse);
        if let (Some(last), Some(_)) = (last, self.replicas()) {
            let draining = self.shared.draining.subscribe();
            if let Some(rest) = Box::pin(session.read_from_replica(last, draining)).await {
                return response::with_deadline(rest, deadline, session.host(), AtDeadline::Close);
            }
        }
        Box::pin(session.register_streams()).await;
        session.open_stream(last, deadline)
    }

    async fn delete(&self, head: &RequestHead, principal: &Principal) -> Response<McpBody> {
        if self.is_sessionless() {
            return self.method_not_allowed(false);
        }
        match self.find_session(&head.headers, principal, head.client).await {
            Ok(session) => match self.shared.sessions.end(&session).await {
                Ok(()) => response::empty_response(204),
                Err(error) => self.session_error_response(error.into()),
            },
            Err(refused) => self.session_error_response(refused),
        }
    }

    /// The session that the request names.
    async fn find_session(
        &self,
        headers: &RequestHeaders,
        principal: &Principal,
        client: Option<IpAddr>,
    ) -> Result<Arc<Session>, SessionError> {
        let id = headers.get(SESSION_ID_HEADER).ok_or(SessionError::Missing)?;
        let id = std::str::from_utf8(id).map_err(|_| SessionError::Unknown)?;
        let sessions = &self.shared.sessions;
        let session = match sessions.find_local(id, principal) {
            Some(session_id) => session_id,
            None => Box::pin(sessions.find(id, principal, client)).await?,
        };
        let session = session.ok_or(SessionError::Unknown)?;
        session.listen(|| self.changes());
        Ok(session)
    }

    /// Saves a session before its client receives the response that depends on the change. While the state fails, the
    /// session continues in this replica, which knows it.
    async fn save_before_response(&self, session: &Session) {
        if self.shared.sessions.is_saved(session) {
            return;
        }
        if let Err(error) = Box::pin(self.shared.sessions.save(session)).await {
            tracing::warn!(target: "creole::http", %error, "cannot save a session; it is saved with its next request");
        }
    }

    /// Rejects a message with a JSON-RPC error.
    fn fault_response(
        &self,
        fields: Option<&Fields<'_>>,
        fault: &Fault,
        rules: &'static Rules,
        status: u16,
    ) -> Response<McpBody> {
        let service = self.shared.service.clone();
        let unnamed = Origin::sessionless(self.shared.anonymous.clone());
        let host = HttpHost::open(service, unnamed, ResponseStream::transient());
        host.refuse(fields, fault, rules);
        let reader = host.attach(COMMON_STREAM, None);
        match reader.map(|reader| host.first_reply_now(COMMON_STREAM, reader, true)) {
            Some(FirstReply::Response(text, _)) => response::json_response(status, text),
            _ => response::empty_response(status),
        }
    }

    fn method_not_allowed(&self, is_old: bool) -> Response<McpBody> {
        let allowed = match () {
            () if is_old => "GET, POST",
            () if self.is_sessionless() => "POST",
            () => "GET, POST, DELETE",
        };
        let mut response = response::error_response(
            405,
            &format!("method not allowed; this endpoint accepts {allowed}"),
        );
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

/// The value of a header; a repeated header is joined to a list (RFC 9110, 5.3).
fn joined_header<'a>(headers: &'a RequestHeaders, name: &'a str) -> Option<Cow<'a, [u8]>> {
    let mut values = headers.get_all(name);
    let first = values.next()?;
    let Some(second) = values.next() else { return Some(Cow::Borrowed(first)) };
    let all: Vec<_> = [first, second].into_iter().chain(values).collect();
    Some(Cow::Owned(all.join(&b", "[..])))
}

impl<B> tower_service::Service<Request<B>> for McpEndpoint
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Send,
{
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<McpBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let endpoint = self.clone();
        Box::pin(async move { Ok(endpoint.handle(request).await) })
    }
}

impl HttpHandler for McpEndpoint {
    type Body = McpBody;

    fn handle(
        &self,
        head: &mut RequestHead,
        body: IncomingBody,
        caller: Option<Principal>,
    ) -> impl Future<Output = Response<McpBody>> {
        self.handle_request(head, body, caller)
    }
}

impl fmt::Debug for McpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Endpoint").finish_non_exhaustive()
    }
}
