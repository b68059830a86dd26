//! Handles a POST: finds the session or exchange that its message belongs to, and responds.

use std::future::poll_fn;
use std::net::IpAddr;
use std::task::{Context, Poll};

use bytes::Bytes;
use creole_proto::fault::{Fault, FaultKind};
use creole_proto::http::mcp_headers::{
    METHOD_HEADER, NAME_HEADER, PROTOCOL_VERSION_HEADER, SESSION_ID_HEADER,
};
use creole_proto::http::{
    AcceptedMedia, McpHeaders, PostKind as Belongs, check_stateless_request, classify_post,
    is_json_content_type, parse_accept, response_status,
};
use creole_proto::method::Method as Mcp;
use creole_proto::revision::Rules;
use creole_proto::wire::{Fields, Frame, Object, ScanError, scan, unquote};
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};

use crate::call::Origin;
use crate::chain::BoxFuture;
use crate::principal::Principal;
use crate::serve::http::mcp::endpoint::{
    EndpointSettings, McpEndpoint, SESSION_HEADER, joined_header, legacy_sse,
};
use crate::serve::http::mcp::http_caller::{HttpCaller, ScopeRefusal};
use crate::serve::http::mcp::response;
use crate::serve::http::mcp::response::McpBody;
use crate::serve::http::mcp::session::QuotaHolder;
use crate::serve::http::mcp::stateless_exchange::StatelessExchange;
use crate::serve::http::mcp::stream::ResponseStream;
use crate::serve::http::mcp::streams::HttpHost;
use crate::serve::http::web::body;
use crate::serve::http::web::handler::ErrorResponse;
use crate::serve::http::web::request::{RequestHead, RequestHeaders};
use crate::telemetry::request_log;

/// A POST whose body was read.
struct PostRequest<'a> {
    headers: &'a RequestHeaders,
    accepted: AcceptedMedia,
    caller: HttpCaller<'a>,
    client: Option<IpAddr>,
    scanned: Result<Frame<'a>, ScanError>,
}

/// The progress of a response: most are ready as soon as the body is.
///
/// A response that has to wait does so in its own future. The future that reads the body is a part of every connection
/// and is moved with every request, so it holds nothing that only some requests need.
enum PostResponse<'a> {
    Done(Response<McpBody>),
    Later(BoxFuture<'a, Response<McpBody>>),
}

impl McpEndpoint {
    pub(crate) async fn post<B>(
        &self,
        head: &RequestHead,
        body: B,
        principal: &Principal,
        is_old: bool,
    ) -> Response<McpBody>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let headers = &head.headers;
        if !is_json_content_type(headers.get(CONTENT_TYPE.as_str())) {
            return response::error_response(415, "the body must be application/json in UTF-8");
        }
        if !is_identity(headers) {
            return response::unsupported_encoding();
        }
        let mut accepted = parse_accept(joined_header(headers, ACCEPT.as_str()).as_deref());
        if !accepted.json && !accepted.events {
            return response::error_response(
                406,
                "responses are application/json or text/event-stream; accept one of them",
            );
        }
        accepted.events &= self.dialect().event_streams;
        let EndpointSettings { body: limits, budget, .. } = &self.shared.settings;
        let hold = || budget.reserve_for(QuotaHolder::new(principal, head.client));
        let (body, reservation) = match body::read_reserved(body, limits, hold).await {
            Ok(read) => read,
            Err(unread) => return ErrorResponse::from(unread).into_response(),
        };
        if self.shared.service.logs_payloads() {
            request_log::log_payload("received", &body);
        }
        let scanned = scan(&body, &self.shared.service.profile().limits.scan);
        let caller = HttpCaller::new(principal, head).with_body(&body);
        let post = PostRequest { headers, accepted, caller, client: head.client, scanned };
        if is_old {
            let scanned = post.scanned.as_ref();
            let message = legacy_sse::handle_message(self, head, principal, &body, scanned);
            return Box::pin(message).await;
        }
        // Calls are first polled with the waker of the task that waits for their response.
        let mut response =
            match poll_fn(|context| Poll::Ready(self.handle_message(&post, context))).await {
                PostResponse::Done(response) => response,
                PostResponse::Later(response) => response.await,
            };
        if !self.dialect().error_statuses && is_error_message(&response) {
            *response.status_mut() = StatusCode::OK;
        }
        match reservation {
            // The request's memory stays reserved until the response is complete.
            Some(reservation) => response::with_reservation(response, reservation),
            None => response,
        }
    }

    fn handle_message<'a>(
        &'a self,
        post: &'a PostRequest<'a>,
        context: &mut Context<'_>,
    ) -> PostResponse<'a> {
        let dialect = &self.shared.service.profile().dialect;
        let header = |name| joined_header(post.headers, name);
        let (version, method, name) =
            (header(PROTOCOL_VERSION_HEADER), header(METHOD_HEADER), header(NAME_HEADER));
        let head = McpHeaders {
            protocol_version: version.as_deref(),
            method: method.as_deref(),
            name: name.as_deref(),
            has_session: post.headers.contains(SESSION_ID_HEADER),
        };
        let Ok(frame) = &post.scanned else {
            return PostResponse::Later(Box::pin(self.unreadable_response(post)));
        };
        match classify_post(frame, &head, dialect) {
            Err(fault) => {
                PostResponse::Done(self.fault_response(None, &fault, dialect.base_rules(), 400))
            }
            Ok(Belongs::Stateless) => self.handle_stateless(post, frame, &head, context),
            Ok(Belongs::Sessionless) => self.run_stateless(post, dialect.base_rules(), context),
            Ok(Belongs::Initialize) => PostResponse::Later(Box::pin(self.initialize_session(post))),
            Ok(Belongs::Session)
                if !post.headers.contains(SESSION_ID_HEADER) && expects_response(frame) =>
            {
                // A client without a session gets the error of the dialect.
                self.run_stateless(post, self.dialect().base_rules(), context)
            }
            Ok(Belongs::Session) => {
                PostResponse::Later(Box::pin(self.handle_in_session(post, frame)))
            }
        }
    }

    /// The error for an unreadable message, in the form of the session's revision, if there is a session.
    async fn unreadable_response<'a>(&self, post: &'a PostRequest<'a>) -> Response<McpBody> {
        let scanned = post.scanned.as_ref();
        match self.find_session(post.headers, post.caller.principal, post.client).await {
            Ok(session) => session.post(scanned, post.accepted.events, post.caller).await,
            Err(_) => {
                let rules = self.dialect().base_rules();
                let alone = |context: &mut Context<'_>| self.run_stateless(post, rules, context);
                match poll_fn(|context| Poll::Ready(alone(context))).await {
                    PostResponse::Done(response) => response,
                    PostResponse::Later(response) => response.await,
                }
            }
        }
    }

    /// Handles a stateless request, whose headers repeat members of its message.
    fn handle_stateless<'a>(
        &self,
        post: &'a PostRequest<'a>,
        frame: &Frame<'_>,
        head: &McpHeaders<'_>,
        context: &mut Context<'_>,
    ) -> PostResponse<'a> {
        let rules = Rules::CANONICAL;
        let Frame::One(fields) = frame else {
            return PostResponse::Done(response::empty_response(400));
        };
        let dialect = &self.shared.service.profile().dialect;
        let checked = check_stateless_request(fields, head, dialect)
            .and_then(|method| self.check_mirrored_headers(method, fields, post));
        match checked {
            Ok(()) => self.run_stateless(post, rules, context),
            Err(fault) => {
                // A missing member of `_meta` gets status 400, other parameters get 200.
                let status = match fault.kind {
                    FaultKind::InvalidParams => 400,
                    kind => response_status(Some(kind), rules),
                };
                PostResponse::Done(self.fault_response(Some(fields), &fault, rules, status))
            }
        }
    }

    /// Checks the mirrored headers that a tool's schema requires.
    fn check_mirrored_headers(
        &self,
        method: Option<Mcp>,
        fields: &Fields<'_>,
        post: &PostRequest<'_>,
    ) -> Result<(), Fault> {
        if method != Some(Mcp::CallTool) {
            return Ok(());
        }
        let tool = fields.param_members.name.and_then(unquote).unwrap_or_default();
        let registry = self.shared.service.registry();
        let Some(mirrors) = registry.mirrored_headers(&tool, post.caller.principal) else {
            return Ok(());
        };
        let arguments =
            fields.param_members.arguments.and_then(Object::new).unwrap_or(Object::EMPTY);
        for mirror in mirrors.iter() {
            mirror.check(arguments, joined_header(post.headers, &mirror.header).as_deref())?;
        }
        Ok(())
    }

    /// Runs a message that needs no session.
    fn run_stateless<'a>(
        &self,
        post: &'a PostRequest<'a>,
        rules: &'static Rules,
        context: &mut Context<'_>,
    ) -> PostResponse<'a> {
        let service = self.shared.service.clone();
        let principal = post.caller.principal.clone();
        let origin = match rules.has_sessions {
            true => Origin::new(principal),
            false => Origin::sessionless(principal),
        };
        let host = HttpHost::open(service, origin, ResponseStream::transient());
        let caller = post.caller.in_session(post.caller.principal);
        let mut started = host.receive_first(post.scanned.as_ref(), caller);
        if let Some((denial, rules)) = started.take_denial() {
            host.cancel_calls();
            return PostResponse::Done(post.caller.refuse(&ScopeRefusal { rules, denial }));
        }
        let begun = StatelessExchange::begin(host, started, || self.changes(), context);
        let Some(mut exchange) = begun else {
            return PostResponse::Done(response::empty_response(202));
        };
        match exchange.ready_response(rules, post.caller) {
            Some(response) => PostResponse::Done(response),
            None => PostResponse::Later(Box::pin(exchange.into_response(
                post.accepted.events,
                rules,
                post.caller,
            ))),
        }
    }

    /// Opens a session with the response to `initialize`.
    async fn initialize_session(&self, post: &PostRequest<'_>) -> Response<McpBody> {
        let session = match self.open_session(post.caller.principal, post.client, false) {
            Ok(session) => session,
            Err(refused) => return self.session_error_response(refused),
        };
        let mut response =
            session.post(post.scanned.as_ref(), post.accepted.events, post.caller).await;
        if session.host().is_opened() {
            if let Err(refused) = self.store_session(&session).await {
                return self.session_error_response(refused);
            }
            if let Ok(id) = HeaderValue::from_str(session.id()) {
                response.headers_mut().insert(SESSION_HEADER, id);
            }
            // No other replica would know the session.
            if let Err(error) = Box::pin(self.shared.sessions.save(&session)).await {
                self.shared.sessions.discard(&session);
                return self.session_error_response(error.into());
            }
        }
        response
    }

    async fn handle_in_session(
        &self,
        post: &PostRequest<'_>,
        frame: &Frame<'_>,
    ) -> Response<McpBody> {
        let session =
            match self.find_session(post.headers, post.caller.principal, post.client).await {
                Ok(session) => session,
                Err(refused) => return self.session_error_response(refused),
            };
        session.note_handshake(frame);
        if let Frame::One(fields) = frame
            && fields.method.is_none()
            && (fields.result.is_some() || fields.error.is_some())
            && !session.host().is_expected_response(fields)
        {
            let forwarded = Box::pin(session.forward_input_response(fields, post.caller)).await;
            if let Some(response) = forwarded {
                return response;
            }
            let fault = Fault::new(
                FaultKind::InvalidRequest,
                "the response does not match an open request of the server",
            );
            return self.fault_response(None, &fault, session.host().rules(), 400);
        }
        if let Frame::One(fields) = frame {
            session.forward_cancellation(fields, post.caller);
        }
        let changes_session = session.is_shared_change(frame);
        if changes_session {
            Box::pin(session.refresh()).await;
        }
        let response = session.post(post.scanned.as_ref(), post.accepted.events, post.caller).await;
        self.save_before_response(&session).await;
        if changes_session {
            session.announce_change();
        }
        response
    }
}

/// Whether the body has no content encoding.
fn is_identity(headers: &RequestHeaders) -> bool {
    let is_plain = |coding: &[u8]| {
        let coding = coding.trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    };
    headers
        .get_all(CONTENT_ENCODING.as_str())
        .all(|value| value.split(|byte| *byte == b',').all(is_plain))
}

/// Whether any message of the frame expects a response.
fn expects_response(frame: &Frame<'_>) -> bool {
    let is_answer = |fields: &Fields<'_>| fields.result.is_some() != fields.error.is_some();
    // A malformed message gets an error response.
    let is_request = |fields: &Fields<'_>| match fields.method {
        Some(_) => fields.id.is_some(),
        None => !is_answer(fields),
    };
    match frame {
        Frame::One(fields) => is_request(fields),
        Frame::Batch(all) => all.is_empty() || all.iter().any(is_request),
    }
}

/// Whether the response is a JSON-RPC error for a message.
fn is_error_message(response: &Response<McpBody>) -> bool {
    response.status() == StatusCode::BAD_REQUEST && response::is_json(response)
}
