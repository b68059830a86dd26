//! The response to a caller that is refused.
//!
//! It says what to do and not what was wrong: an unknown user, a wrong password, a malformed header and an expired key
//! get the same status, headers and body.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::requirement::Requirement;
use super::resource::{DpopMode, ProtectedResource};
use crate::principal::Principal;

/// The header with a nonce for DPoP proofs.
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The HTTP response for a refused caller.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// 401, 403, 429 or 503.
    pub status: StatusCode,
    /// `WWW-Authenticate`, `Retry-After` and the headers of the body.
    pub headers: HeaderMap,
    /// A sentence for the user, as plain text.
    pub body: &'static str,
    /// Who is refused and why. It is for operators, and the caller does not see it.
    pub(crate) refused: Option<RefusedCaller>,
}

/// Two challenges are equal if their callers cannot tell them apart.
impl PartialEq for Challenge {
    fn eq(&self, other: &Self) -> bool {
        (self.status, &self.headers, self.body) == (other.status, &other.headers, other.body)
    }
}

/// Who is refused and why, for operators.
#[derive(Clone, Debug)]
pub(crate) struct RefusedCaller {
    /// The reason.
    pub(crate) reason: &'static str,
    /// The id of the principal, if it is known.
    pub(crate) principal: Option<Arc<str>>,
}

/// The authentication schemes that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schemes {
    pub(super) basic: bool,
    pub(super) bearer: bool,
}

impl Challenge {
    /// 401: the credentials belong to no principal. `bearer_given`: they were a bearer key (RFC 6750, 3.1).
    pub(super) fn unauthorized(schemes: Schemes, bearer_given: bool) -> Self {
        let mut challenge = Self::new(StatusCode::UNAUTHORIZED, instructions_for(schemes));
        let mut offer = |text| {
            challenge.headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(text));
        };
        if schemes.basic {
            offer(BASIC_CHALLENGE);
        }
        if schemes.bearer && bearer_given {
            offer("Bearer realm=\"creole\", error=\"invalid_token\"");
        } else if schemes.bearer {
            offer("Bearer realm=\"creole\"");
        }
        challenge
    }

    /// 401 at a path that access tokens are issued for. `bearer_given`: a token or key was sent.
    ///
    /// `Bearer` comes first, because some clients read only the first challenge.
    pub(super) fn unauthorized_at(
        resource: &ProtectedResource,
        host: Option<&str>,
        schemes: Schemes,
        bearer_given: bool,
    ) -> Self {
        let mut challenge = Self::new(StatusCode::UNAUTHORIZED, TOKEN);
        let metadata = resource.metadata_url(host);
        let scopes = resource.challenge_scopes(None, &[]);
        let error: &[(&str, &str)] = match bearer_given {
            true => &[("error", "invalid_token"), ("error_description", "invalid access token")],
            false => &[],
        };
        let mut bearer = Parameters::new("Bearer");
        bearer.add_all(error).add("resource_metadata", &metadata).add_scopes(&scopes);
        challenge.offer(bearer);
        if resource.dpop() != DpopMode::Off {
            let mut dpop = Parameters::new("DPoP");
            dpop.add("algs", &ProtectedResource::dpop_algorithms());
            dpop.add("resource_metadata", &metadata).add_scopes(&scopes);
            challenge.offer(dpop);
        }
        if schemes.basic {
            challenge.headers.append(WWW_AUTHENTICATE, HeaderValue::from_static(BASIC_CHALLENGE));
        }
        challenge
    }

    /// 401: the proof of the key that the token is bound to is not valid (RFC 9449, 7.1).
    pub fn invalid_proof(resource: &ProtectedResource, host: Option<&str>) -> Self {
        Self::refused_proof(resource, host, "invalid_dpop_proof")
    }

    /// 401: the proof must have this nonce (RFC 9449, 9).
    pub fn nonce_required(
        resource: &ProtectedResource,
        host: Option<&str>,
        nonce: HeaderValue,
    ) -> Self {
        let mut challenge = Self::refused_proof(resource, host, "use_dpop_nonce");
        challenge.headers.insert(DPOP_NONCE, nonce);
        challenge
    }

    fn refused_proof(resource: &ProtectedResource, host: Option<&str>, error: &str) -> Self {
        let mut challenge = Self::new(StatusCode::UNAUTHORIZED, TOKEN);
        let mut dpop = Parameters::new("DPoP");
        dpop.add("error", error).add("algs", &ProtectedResource::dpop_algorithms());
        dpop.add("resource_metadata", &resource.metadata_url(host));
        challenge.offer(dpop);
        challenge
    }

    /// 403: the token lacks a scope. The header names all that the client should have (RFC 6750, 3.1).
    pub fn insufficient_scope(
        resource: &ProtectedResource,
        host: Option<&str>,
        scopes: &[&str],
    ) -> Self {
        let mut challenge = Self::new(StatusCode::FORBIDDEN, MISSING_SCOPE);
        let mut bearer = Parameters::new("Bearer");
        bearer.add("error", "insufficient_scope").add_scopes(scopes);
        bearer.add("resource_metadata", &resource.metadata_url(host));
        bearer.add("error_description", "additional scopes required");
        challenge.offer(bearer);
        challenge
    }

    /// 403: no scope allows the operation, so there is none to ask for.
    pub fn unlisted() -> Self {
        Self::new(StatusCode::FORBIDDEN, UNLISTED)
    }

    /// 503: it cannot be known now whether the token is valid.
    pub fn unavailable(wait: Duration) -> Self {
        Self::retry_later(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE, wait)
    }

    fn offer(&mut self, parameters: Parameters) {
        if let Ok(value) = HeaderValue::try_from(parameters.text) {
            self.headers.append(WWW_AUTHENTICATE, value);
        }
    }

    /// 403: the principal is known, and does not have the role.
    pub(super) fn forbidden(role: &str, bearer_given: bool) -> Self {
        let mut challenge = Self::new(StatusCode::FORBIDDEN, FORBIDDEN);
        let text =
            format!("Bearer realm=\"creole\", error=\"insufficient_scope\", scope=\"{role}\"");
        if let Some(value) = HeaderValue::try_from(text).ok().filter(|_| bearer_given) {
            challenge.headers.append(WWW_AUTHENTICATE, value);
        }
        challenge
    }

    /// 429: there were too many failed attempts.
    pub(super) fn too_many_attempts(wait: Duration) -> Self {
        Self::retry_later(StatusCode::TOO_MANY_REQUESTS, TOO_MANY_ATTEMPTS, wait)
    }

    /// 503: too many passwords wait to be verified.
    pub(super) fn busy() -> Self {
        Self::retry_later(StatusCode::SERVICE_UNAVAILABLE, BUSY, Duration::from_secs(1))
    }

    fn retry_later(status: StatusCode, body: &'static str, wait: Duration) -> Self {
        let mut challenge = Self::new(status, body);
        // Rounded up, so that a caller that waits as long may try again.
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        challenge.headers.insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        challenge
    }

    fn new(status: StatusCode, body: &'static str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Self { status, headers, body, refused: None }
    }

    /// The same challenge for this caller.
    pub(crate) fn of(mut self, reason: &'static str, principal: Option<&str>) -> Self {
        self.refused = Some(RefusedCaller { reason, principal: principal.map(Arc::from) });
        self
    }

    /// The challenge as a response.
    pub fn into_response<B: From<&'static str>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

impl Requirement {
    /// Checks that the principal is admitted.
    ///
    /// # Errors
    /// A challenge with status 403 that names the role, when the principal does not have it.
    pub fn check(&self, principal: &Principal) -> Result<(), Box<Challenge>> {
        match self.missing_role(principal) {
            Some(role) => {
                let is_key = principal.id().starts_with("key:");
                Err(Box::new(Challenge::forbidden(role, is_key)))
            }
            None => Ok(()),
        }
    }
}

/// The text of a challenge: a scheme and its parameters.
struct Parameters {
    text: String,
}

impl Parameters {
    fn new(scheme: &str) -> Self {
        Self { text: format!("{scheme} realm=\"creole\"") }
    }

    /// Adds a parameter. Characters that would end the quoted value are left out: configuration and checked hosts have
    /// none.
    fn add(&mut self, name: &str, value: &str) -> &mut Self {
        let is_allowed = |each: &char| matches!(each, ' '..='~') && !matches!(each, '"' | '\\');
        self.text.push_str(&format!(", {name}=\""));
        self.text.extend(value.chars().filter(is_allowed));
        self.text.push('"');
        self
    }

    fn add_all(&mut self, parameters: &[(&str, &str)]) -> &mut Self {
        for (name, value) in parameters {
            self.add(name, value);
        }
        self
    }

    fn add_scopes(&mut self, scopes: &[&str]) -> &mut Self {
        match scopes.is_empty() {
            true => self,
            false => self.add("scope", &scopes.join(" ")),
        }
    }
}

fn instructions_for(schemes: Schemes) -> &'static str {
    match schemes {
        Schemes { basic: true, bearer: true } => BASIC_OR_BEARER,
        Schemes { basic: true, bearer: false } => BASIC,
        Schemes { basic: false, .. } => BEARER,
    }
}

const BASIC_CHALLENGE: &str = "Basic realm=\"creole\", charset=\"UTF-8\"";

const TOKEN: &str = "Authentication required. Send the header `Authorization: Bearer` with an \
    access token for this server. The header `WWW-Authenticate` says where to get one.\n";
const MISSING_SCOPE: &str = "Forbidden: the access token does not have the scopes that this \
    request requires. The header `WWW-Authenticate` names them.\n";
const UNLISTED: &str = "Forbidden: no scope of this server allows this operation.\n";
const UNAVAILABLE: &str = "The access token cannot be checked now. Try again later.\n";
const BASIC_OR_BEARER: &str = "Authentication required. Send the header `Authorization: Basic` \
    with a user name and password, or `Authorization: Bearer` with a key. The operator of the \
    server provides them.\n";
const BASIC: &str = "Authentication required. Send the header `Authorization: Basic` with a user \
    name and password. The operator of the server provides them.\n";
const BEARER: &str = "Authentication required. Send the header `Authorization: Bearer` with a \
    key. The operator of the server provides it.\n";
const FORBIDDEN: &str = "Forbidden: your account does not have the role that this server \
    requires. The operator of the server can grant it.\n";
const TOO_MANY_ATTEMPTS: &str =
    "Too many failed attempts. Wait for the time in the header `Retry-After`.\n";
const BUSY: &str = "Too many authentications are in progress. Try again later.\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ResourceSettings;

    const METADATA: &str =
        "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"";
    const ALGORITHMS: &str = "algs=\"ES256 EdDSA Ed25519 RS256 PS256\"";

    fn resource(dpop: DpopMode) -> ProtectedResource {
        let settings = ResourceSettings {
            path: "/mcp".to_owned(),
            public_url: Some("https://mcp.example.com".to_owned()),
            issuers: vec![("corp".into(), "https://id.example.com".into())],
            required_scopes: vec!["mcp".into()],
            dpop,
            ..ResourceSettings::default()
        };
        ProtectedResource::new(settings, Arc::default())
    }

    fn offers(challenge: &Challenge) -> Vec<&str> {
        let values = challenge.headers.get_all(WWW_AUTHENTICATE).iter();
        values.map(|value| value.to_str().unwrap()).collect()
    }

    #[test]
    fn a_caller_without_a_token_learns_where_to_get_one() {
        let (basic, bearer) = (false, true);
        let plain = resource(DpopMode::Off);
        let challenge = Challenge::unauthorized_at(&plain, None, Schemes { basic, bearer }, false);
        let expected = format!("Bearer realm=\"creole\", {METADATA}, scope=\"mcp\"");
        assert_eq!(
            (challenge.status, offers(&challenge)),
            (StatusCode::UNAUTHORIZED, vec![&*expected])
        );
    }

    #[test]
    fn bearer_comes_before_the_other_schemes() {
        let schemes = Schemes { basic: true, bearer: true };
        let challenge =
            Challenge::unauthorized_at(&resource(DpopMode::Accept), None, schemes, true);
        let error = "error=\"invalid_token\", error_description=\"invalid access token\"";
        let expected = [
            format!("Bearer realm=\"creole\", {error}, {METADATA}, scope=\"mcp\""),
            format!("DPoP realm=\"creole\", {ALGORITHMS}, {METADATA}, scope=\"mcp\""),
            "Basic realm=\"creole\", charset=\"UTF-8\"".to_owned(),
        ];
        assert_eq!(offers(&challenge), expected);
    }

    #[test]
    fn a_refused_proof_says_what_to_send() {
        let resource = resource(DpopMode::Accept);
        let wrong = Challenge::invalid_proof(&resource, None);
        let form =
            |error| format!("DPoP realm=\"creole\", error=\"{error}\", {ALGORITHMS}, {METADATA}");
        assert_eq!(offers(&wrong), [form("invalid_dpop_proof")]);
        let nonce = HeaderValue::from_static("abc");
        let again = Challenge::nonce_required(&resource, None, nonce);
        assert_eq!(offers(&again), [form("use_dpop_nonce")]);
        assert_eq!(again.headers[DPOP_NONCE], "abc");
        assert_eq!((wrong.status, wrong.body), (again.status, again.body));
    }

    #[test]
    fn a_missing_scope_is_named() {
        let resource = resource(DpopMode::Accept);
        let challenge = Challenge::insufficient_scope(&resource, None, &["mcp", "files:write"]);
        let expected = format!(
            "Bearer realm=\"creole\", error=\"insufficient_scope\", scope=\"mcp files:write\", \
                {METADATA}, error_description=\"additional scopes required\""
        );
        assert_eq!(
            (challenge.status, offers(&challenge)),
            (StatusCode::FORBIDDEN, vec![&*expected])
        );
    }

    #[test]
    fn an_unreachable_issuer_is_no_refusal() {
        let challenge = Challenge::unavailable(Duration::from_secs(5));
        assert_eq!(challenge.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(challenge.headers[RETRY_AFTER], "5");
        assert!(offers(&challenge).is_empty());
    }

    #[test]
    fn no_value_ends_the_quotes() {
        let mut parameters = Parameters::new("Bearer");
        parameters.add("scope", "a\"b\\c\nd");
        assert_eq!(parameters.text, "Bearer realm=\"creole\", scope=\"abcd\"");
    }
}
