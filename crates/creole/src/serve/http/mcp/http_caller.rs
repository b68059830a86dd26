//! The caller of an HTTP request, and the responses to a caller whose access token lacks a scope.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole_proto::fault::FaultKind;
use creole_proto::revision::{Rules, ScopeChallenge};
use creole_proto::wire::Object;
use http::{Response, Version};
use tokio::time::Instant;

use crate::auth::challenge::Challenge;
use crate::auth::{ProtectedResource, RequestDetails as _, ScopeDenial};
use crate::host::RequestCaller;
use crate::principal::Principal;
use crate::serve::http::mcp::response::McpBody;
use crate::serve::http::web::handler::{ErrorResponse, RefusedRequest};
use crate::serve::http::web::request::RequestHead;
use crate::telemetry::Modes;
use crate::telemetry::facts::{RequestFacts, RequestSource, Transport};
use crate::telemetry::frames::CapturedFrame;
use crate::telemetry::trace::TraceHeaders;

/// How long after its expiry a token still counts: clocks differ.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The caller of an HTTP request.
#[derive(Clone, Copy)]
pub(crate) struct HttpCaller<'a> {
    pub(crate) principal: &'a Principal,
    /// What its access token is for.
    pub(crate) resource: Option<&'a Arc<ProtectedResource>>,
    /// The head of the request, if this process received it.
    head: Option<&'a RequestHead>,
    /// The body of the request.
    body: Option<&'a [u8]>,
    /// The id of the session that the request belongs to.
    session: Option<&'a str>,
}

/// Why nothing of a message was run: the token lacks a scope.
#[derive(Debug)]
pub(crate) struct ScopeRefusal {
    pub(crate) rules: &'static Rules,
    pub(crate) denial: ScopeDenial,
}

impl<'a> HttpCaller<'a> {
    /// The caller of this request.
    pub(crate) fn new(principal: &'a Principal, head: &'a RequestHead) -> Self {
        let resource = head.resource.as_ref();
        Self { principal, resource, head: Some(head), body: None, session: None }
    }

    /// The caller of a request with this body.
    pub(crate) fn with_body(self, body: &'a [u8]) -> Self {
        Self { body: Some(body), ..self }
    }

    /// The body of the request, if this process received it.
    pub(crate) fn body(self) -> Option<&'a [u8]> {
        self.body
    }

    /// The caller of a request of this session.
    pub(crate) fn with_session(self, id: &'a str) -> Self {
        Self { session: Some(id), ..self }
    }

    /// The caller of a request that another process received.
    pub(crate) fn forwarded(
        principal: &'a Principal,
        resource: Option<&'a Arc<ProtectedResource>>,
    ) -> Self {
        Self { principal, resource, head: None, body: None, session: None }
    }

    /// The caller as its calls see it, in a session that may have its own principal.
    pub(crate) fn in_session(&'a self, session: &'a Principal) -> RequestCaller<'a> {
        let principal = if self.principal.is_local() { session } else { self.principal };
        let scopes = self.resource.map(|resource| resource.scopes());
        // Most servers have no scope rules, and their calls carry none.
        let scopes = scopes.filter(|scopes| !scopes.allows_everything());
        RequestCaller { principal, scopes, source: Some(self) }
    }

    /// The response to a caller that lacks scopes.
    pub(crate) fn refuse(self, refusal: &ScopeRefusal) -> Response<McpBody> {
        let needed = match &refusal.denial {
            ScopeDenial::Missing(needed) => needed,
            ScopeDenial::Unlisted => {
                return ErrorResponse::from(self.of_caller(Challenge::unlisted())).into_response();
            }
        };
        let Some(resource) = self.resource else {
            return ErrorResponse::from(self.of_caller(Challenge::unlisted())).into_response();
        };
        let granted = self.principal.token().map(|token| token.scopes.as_slice());
        let scopes = match refusal.rules.scope_challenge {
            ScopeChallenge::Needed => resource.challenge_scopes(None, needed),
            ScopeChallenge::Union => resource.challenge_scopes(granted, needed),
        };
        let host = self.head.and_then(|head| head.host());
        tracing::warn!(
            principal = self.principal.id(),
            path = resource.path(),
            scopes = scopes.join(" "),
            "the access token lacks a scope"
        );
        let challenge = Challenge::insufficient_scope(resource, host, &scopes);
        ErrorResponse::from(self.of_caller(challenge)).into_response()
    }

    /// The challenge, with who is refused.
    fn of_caller(self, challenge: Challenge) -> Challenge {
        challenge.of("missing scope", Some(self.principal.id()))
    }

    /// The response to a caller whose call failed for a missing scope, if it did. `text` is the encoded fault.
    pub(crate) fn refuse_fault(
        self,
        fault: Option<FaultKind>,
        text: &[u8],
        rules: &'static Rules,
    ) -> Option<Response<McpBody>> {
        if fault != Some(FaultKind::InsufficientScope) || self.resource.is_none() {
            return None;
        }
        let needed = required_scopes(text)?;
        let denial = ScopeDenial::Missing(needed);
        let mut response = self.refuse(&ScopeRefusal { rules, denial });
        if let Some(refused) = response.extensions_mut().get_mut::<RefusedRequest>() {
            refused.is_call = true;
        }
        Some(response)
    }

    /// When streams of this caller end: its token has expired then.
    pub(crate) fn stream_deadline(self) -> Option<Instant> {
        let end = self.principal.token()?.expires_at + CLOCK_SKEW;
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        // A token that is valid for longer than any process runs.
        Some(Instant::now() + left.min(Duration::from_secs(10 * 365 * 24 * 3600)))
    }
}

/// The trace context in the headers of a request, if it has one.
fn trace_headers(head: &RequestHead) -> Option<Arc<TraceHeaders>> {
    let text = |name| -> Option<Box<str>> {
        let values = head.headers.get_all(name).map(String::from_utf8_lossy);
        let values: Vec<_> = values.collect();
        (!values.is_empty()).then(|| values.join(",").into())
    };
    let traceparent = text("traceparent");
    traceparent.is_some().then(|| {
        let (tracestate, baggage) = (text("tracestate"), text("baggage"));
        Arc::new(TraceHeaders { traceparent, tracestate, baggage })
    })
}

impl RequestSource for HttpCaller<'_> {
    fn facts(&self, modes: Modes) -> RequestFacts {
        let version = match self.head.map(|head| head.version) {
            Some(Version::HTTP_2) => "2",
            Some(Version::HTTP_10) => "1.0",
            _ => "1.1",
        };
        let body = self.body.filter(|_| modes.contains(Modes::FRAMES));
        let session = self.session.filter(|_| modes.contains(Modes::RECORDS));
        let traced = self.head.filter(|_| modes.contains(Modes::TRACES));
        RequestFacts {
            transport: Transport::Http { version },
            remote: self.head.and_then(|head| head.client),
            session: session.map(RequestFacts::session_digest),
            trace_headers: traced.and_then(trace_headers),
            frame: body.map(CapturedFrame::text_of),
            ..RequestFacts::default()
        }
    }
}

/// The scopes in the data of a fault.
fn required_scopes(text: &[u8]) -> Option<Vec<Arc<str>>> {
    let text = std::str::from_utf8(text).ok()?;
    let data = Object::new(text)?.object("error").ok()??.object("data").ok()??;
    let scopes: Vec<String> = serde_json::from_str(data.get("required_scopes")?).ok()?;
    (!scopes.is_empty()).then(|| scopes.into_iter().map(Into::into).collect())
}

impl ScopeRefusal {
    /// The refusal as text for another process.
    pub(crate) fn to_text(&self) -> String {
        match &self.denial {
            ScopeDenial::Missing(needed) => needed.join(" "),
            ScopeDenial::Unlisted => String::new(),
        }
    }

    /// The refusal of such a text.
    pub(crate) fn from_text(text: &str, rules: &'static Rules) -> Self {
        let needed: Vec<_> = text.split_whitespace().map(Into::into).collect();
        let denial = match needed.is_empty() {
            true => ScopeDenial::Unlisted,
            false => ScopeDenial::Missing(needed),
        };
        Self { rules, denial }
    }
}
