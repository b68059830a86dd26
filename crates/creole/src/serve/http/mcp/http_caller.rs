//! The caller of an HTTP request, and the responses to a caller whose access token lacks a scope.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole_proto::fault::FaultKind;
use creole_proto::revision::{Rules, ScopeChallenge};
use creole_proto::wire::Object;
use http::Response;
use tokio::time::Instant;

use crate::auth::challenge::Challenge;
use crate::auth::{ProtectedResource, RequestDetails as _, ScopeDenial};
use crate::host::RequestCaller;
use crate::principal::Principal;
use crate::serve::http::mcp::response::McpBody;
use crate::serve::http::web::handler::ErrorResponse;
use crate::serve::http::web::request::RequestHead;

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
        Self { principal, resource: head.resource.as_ref(), head: Some(head) }
    }

    /// The caller of a request that another process received.
    pub(crate) fn forwarded(
        principal: &'a Principal,
        resource: Option<&'a Arc<ProtectedResource>>,
    ) -> Self {
        Self { principal, resource, head: None }
    }

    /// The caller as its calls see it, in a session that may have its own principal.
    pub(crate) fn in_session(self, session: &'a Principal) -> RequestCaller<'a> {
        let principal = if self.principal.is_local() { session } else { self.principal };
        let scopes = self.resource.map(|resource| resource.scopes());
        // Most servers have no scope rules, and their calls carry none.
        let scopes = scopes.filter(|scopes| !scopes.allows_everything());
        RequestCaller { principal, scopes }
    }

    /// The response to a caller that lacks scopes.
    pub(crate) fn refuse(self, refusal: &ScopeRefusal) -> Response<McpBody> {
        let needed = match &refusal.denial {
            ScopeDenial::Missing(needed) => needed,
            ScopeDenial::Unlisted => {
                return ErrorResponse::from(Challenge::unlisted()).into_response();
            }
        };
        let Some(resource) = self.resource else {
            return ErrorResponse::from(Challenge::unlisted()).into_response();
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
        ErrorResponse::from(challenge).into_response()
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
        Some(self.refuse(&ScopeRefusal { rules, denial: ScopeDenial::Missing(needed) }))
    }

    /// When streams of this caller end: its token has expired then.
    pub(crate) fn stream_deadline(self) -> Option<Instant> {
        let end = self.principal.token()?.expires_at + CLOCK_SKEW;
        let left = end.duration_since(SystemTime::now()).unwrap_or_default();
        // A token that is valid for longer than any process runs.
        Some(Instant::now() + left.min(Duration::from_secs(10 * 365 * 24 * 3600)))
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
