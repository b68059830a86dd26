//! The address of an HTTP server, with its connections, proxies and credentials.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use creole_oauth::crypto::dpop::ProvenRequest;
use creole_oauth::discovery::challenge::Challenge;
use creole_oauth::web_url::WebUrl;
use creole_proto::fault::Fault;
use http::header::{AUTHORIZATION, COOKIE};
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};

use crate::budget::{Budget, Reservation};
use crate::client::credentials::{Authorization, Credentials, Refusal, TokenCache};
use crate::client::transport::http::conn::pool::{ConnectionPool, ResponseParts};
use crate::client::transport::http::conn::proxy::Proxies;
use crate::client::transport::http::conn::request::{
    ForwardProxy, HeaderList, HttpRequest, RequestTemplate,
};
use crate::client::transport::http::conn::response::ResponseHead;
use crate::client::transport::http::conn::server_connector;
use crate::client::transport::http::fault;
use crate::process::unavailable_fault;
use crate::tls::TrustedRoots;

/// Default maximum size of a message.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// How often a request is sent again with another authorization.
const MAX_REPLACEMENTS: usize = 3;

/// Timeout of a request that is not a call.
const SHORT_TIMEOUT: Duration = Duration::from_secs(10);

/// The address of an HTTP server. Clones share their connections.
#[derive(Clone)]
pub struct HttpAddress {
    name: Arc<str>,
    url: Uri,
    /// The request target of the URL.
    path: PathAndQuery,
    host: HeaderValue,
    headers: HeaderList,
    /// The authorization, if it changes over time.
    token_cache: Option<TokenCache>,
    pool: Arc<ConnectionPool>,
    /// The proxy that forwards the requests, if there is one.
    forward_proxy: Option<Arc<ForwardProxy>>,
    max_message_bytes: usize,
    budget: Budget,
    has_streams: bool,
}

impl HttpAddress {
    /// The server called `name` at an `http` or `https` URL.
    ///
    /// # Errors
    /// When the URL is invalid, or holds a user and password: those belong into headers, since URLs are shown.
    pub fn new(name: impl Into<String>, url: &str) -> Result<Self, Fault> {
        Self::with_certificates(name, url, None)
    }

    /// The URL, which may hold a secret.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The same with these root certificates, in PEM form, instead of the system's.
    ///
    /// # Errors
    /// As [`HttpAddress::new`], and when these are not certificates.
    pub fn with_certificates(
        name: impl Into<String>,
        url: &str,
        certificates: Option<&[u8]>,
    ) -> Result<Self, Fault> {
        Self::with_proxies(Proxies::of_environment(), name, url, certificates)
    }

    /// The same through these proxies instead of those that the environment names.
    ///
    /// # Errors
    /// As [`HttpAddress::with_certificates`], and when the proxy for this URL cannot be used.
    #[doc(hidden)]
    pub fn with_proxies(
        proxies: Proxies,
        name: impl Into<String>,
        url: &str,
        certificates: Option<&[u8]>,
    ) -> Result<Self, Fault> {
        let name: String = name.into();
        let refused = |reason: &str| {
            unavailable_fault(&name, format!("the URL of `{name}` {reason}"), "not_configured")
        };
        let url: Uri = url.parse().map_err(|_| refused("cannot be read"))?;
        let authority = url.authority().ok_or_else(|| refused("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("contains a password; put it into a header instead"));
        }
        if !matches!(url.scheme_str(), Some("http" | "https")) {
            return Err(refused("begins with neither http:// nor https://"));
        }
        let trust = match (url.scheme_str(), certificates) {
            (Some("https"), Some(certificates)) => TrustedRoots::These(certificates),
            (Some("https"), None) => TrustedRoots::System,
            _ => TrustedRoots::Plain,
        };
        let host = host(&url).ok_or_else(|| refused("has no host"))?;
        let proxy = proxies.proxy_for(&url).map_err(|reason| {
            unavailable_fault(
                &name,
                format!("`{name}` cannot be reached: {reason}"),
                "not_configured",
            )
        })?;
        let forwarded = proxy.filter(|_| url.scheme_str() == Some("http")).map(|proxy| {
            let origin = format!("http://{}", String::from_utf8_lossy(host.as_bytes()));
            Arc::new(ForwardProxy { origin, authorization: proxy.authorization.clone() })
        });
        let connector =
            server_connector::connector(trust, proxies).map_err(|reason| refused(&reason))?;
        let origin = with_path(&url, "/").ok_or_else(|| refused("cannot be read"))?;
        Ok(Self {
            path: path(&url),
            host,
            pool: Arc::new(ConnectionPool::new(connector, origin)),
            forward_proxy: forwarded,
            name: name.into(),
            url,
            headers: HeaderList::default(),
            token_cache: None,
            max_message_bytes: MAX_MESSAGE_BYTES,
            budget: Budget::of_process(),
            has_streams: true,
        })
    }

    /// The same address with a header for every request, such as `Authorization`.
    ///
    /// # Errors
    /// When it is not a valid header.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, Fault> {
        let key = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = HeaderValue::from_str(value).ok();
        let Some((key, mut value)) = key.zip(value) else {
            let detail = format!("the header `{name}` of `{}` cannot be sent", self.name);
            return Err(unavailable_fault(&self.name, detail, "not_configured"));
        };
        value.set_sensitive(key == AUTHORIZATION || key == COOKIE || !is_harmless(name));
        self.headers.set(key, value);
        Ok(self)
    }

    /// The same address with credentials: every request has an `Authorization` header with their value, which replaces
    /// any other. A request that is refused with 401, or with 403 for a missing scope, was not processed: it is sent again
    /// if the credentials return another value, at most three times.
    #[must_use]
    pub fn credentials(mut self, credentials: Arc<dyn Credentials>) -> Self {
        self.token_cache = Some(TokenCache::new(Arc::clone(&self.name), credentials));
        self
    }

    /// Whether the next request may wait for a person who logs in.
    ///
    /// # Errors
    /// When the credentials cannot be fetched.
    pub(crate) async fn may_ask_person(&self) -> Result<bool, Fault> {
        match &self.token_cache {
            Some(tokens) => tokens.may_ask_person().await,
            None => Ok(false),
        }
    }

    /// The extension of the protocol that the credentials use.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        self.token_cache.as_ref().and_then(TokenCache::extension)
    }

    /// Whether requests have a header that may be a credential.
    fn has_credentials(&self) -> bool {
        self.token_cache.is_some() || self.headers.iter().any(|(_, value)| value.is_sensitive())
    }

    /// The fault for a response with a status that is no JSON-RPC response.
    pub(crate) fn status_fault(&self, head: &ResponseHead) -> Fault {
        fault::status_fault(&self.name, self.has_credentials(), head)
    }

    /// The same address with a maximum message size; longer messages are rejected.
    #[must_use]
    pub fn max_message(mut self, bytes: usize) -> Self {
        self.max_message_bytes = bytes;
        self
    }

    /// The same address with a memory budget for buffered responses.
    #[must_use]
    #[doc(hidden)]
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Reserves memory for a response on behalf of this server.
    pub(crate) fn reserve_memory(&self) -> impl FnOnce() -> Reservation + Send + use<> {
        let (budget, name) = (self.budget.clone(), Arc::clone(&self.name));
        move || budget.reserve_for(&*name)
    }

    /// The same address; whether its sessions may have a stream for messages that belong to no call, which is then
    /// requested.
    #[must_use]
    #[doc(hidden)]
    pub fn with_streams(mut self, has_streams: bool) -> Self {
        self.has_streams = has_streams;
        self
    }

    pub(crate) fn has_streams(&self) -> bool {
        self.has_streams
    }

    /// The server's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn max_message_bytes(&self) -> usize {
        self.max_message_bytes
    }

    /// The same server at another URL of the same origin; `None` for another origin: credentials must not go there.
    pub(crate) fn at_reference(&self, reference: &str) -> Option<Self> {
        let url = resolve(&self.url, reference)?;
        Some(Self { path: path(&url), url, ..self.clone() })
    }

    /// The template of requests with these headers; the address's own headers precede them.
    pub(crate) fn request_template(
        &self,
        method: Method,
        mut headers: HeaderList,
    ) -> Arc<RequestTemplate> {
        // A value from the token cache is added to each request.
        let is_ours = |name: &HeaderName| self.token_cache.is_none() || *name != AUTHORIZATION;
        for (name, value) in self.headers.iter().filter(|(name, _)| is_ours(name)) {
            headers.set(name.clone(), value.clone());
        }
        RequestTemplate::new(
            method,
            self.path.clone(),
            headers,
            &self.host,
            self.forward_proxy.as_deref(),
        )
    }

    /// A request with these headers.
    pub(crate) fn request(&self, method: Method, headers: HeaderList, body: Bytes) -> HttpRequest {
        self.request_template(method, headers).request(Vec::new(), body)
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send_request(&self, request: &HttpRequest) -> Result<ResponseParts, Fault> {
        self.send_held(request, &|_| {}).await
    }

    /// Sends a request and waits for the head of its response. The function is called with `true` before a person is
    /// asked to log in, and with `false` after that.
    pub(crate) async fn send_held(
        &self,
        request: &HttpRequest,
        on_hold: &(dyn Fn(bool) + Send + Sync),
    ) -> Result<ResponseParts, Fault> {
        match &self.token_cache {
            None => self.send_once(request).await,
            // On the heap, so that the future of a call stays small.
            Some(tokens) => Box::pin(self.send_authorized(tokens, request, on_hold)).await,
        }
    }

    /// Sends a request with the cached token, and again if the token was refused and replaced. The server has not
    /// processed a request that it refused for its authorization.
    async fn send_authorized(
        &self,
        tokens: &TokenCache,
        request: &HttpRequest,
        on_hold: &(dyn Fn(bool) + Send + Sync),
    ) -> Result<ResponseParts, Fault> {
        let asks_person = tokens.asks_person();
        let mut shown = tokens.current().await?;
        for _ in 0..MAX_REPLACEMENTS {
            let answer = self.send_with(request, shown.as_ref()).await?;
            let Some(refusal) = refusal(&answer.0, shown.as_ref(), tokens.can_add_scopes()) else {
                return Ok(answer);
            };
            if asks_person {
                on_hold(true);
            }
            let replaced = tokens.replace_refused(refusal).await;
            if asks_person {
                on_hold(false);
            }
            match replaced? {
                None => return Ok(answer),
                Some(other) => shown = Some(other),
            }
        }
        self.send_with(request, shown.as_ref()).await
    }

    /// Sends a request with an authorization. A token that is bound to a key has a new proof in each request, and a
    /// second one if the server demands a nonce (RFC 9449, section 9).
    async fn send_with(
        &self,
        request: &HttpRequest,
        shown: Option<&Authorization>,
    ) -> Result<ResponseParts, Fault> {
        let Some(shown) = shown else { return self.send_once(request).await };
        let request = request.with_authorization(shown.header());
        let Some(key) = shown.dpop_key() else { return self.send_once(&request).await };
        let url = WebUrl::parse(&self.url.to_string()).map_err(|error| self.no_proof(&error))?;
        let proven = || {
            let (method, access_token) = (request.method().as_str(), Some(shown.secret()));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let proof = key.proof(ProvenRequest { method, url: &url, access_token }, now);
            proof.map(|proof| request.clone().with_field("dpop", proof))
        };
        let answer = self.send_once(&proven().map_err(|error| self.no_proof(&error))?).await?;
        let is_new = key.store_nonce(&url, answer.0.dpop_nonce.as_deref());
        if answer.0.status != StatusCode::UNAUTHORIZED || !is_new || !asks_for_nonce(&answer.0) {
            return Ok(answer);
        }
        drop(answer);
        let answer = self.send_once(&proven().map_err(|error| self.no_proof(&error))?).await?;
        key.store_nonce(&url, answer.0.dpop_nonce.as_deref());
        Ok(answer)
    }

    fn no_proof(&self, error: &dyn fmt::Display) -> Fault {
        let detail = format!("no proof can be made for the token of `{}`: {error}", self.name);
        unavailable_fault(&self.name, detail, "credentials")
    }

    async fn send_once(&self, request: &HttpRequest) -> Result<ResponseParts, Fault> {
        let sent = self.pool.send(request).await;
        sent.map_err(|error| fault::unreachable_fault(&self.name, &error))
    }

    /// Sends a request with the short timeout.
    pub(crate) async fn send_short(&self, request: &HttpRequest) -> Result<ResponseParts, Fault> {
        let fetching = self.token_cache.as_ref().map_or(Duration::ZERO, TokenCache::timeout);
        match tokio::time::timeout(SHORT_TIMEOUT + fetching, self.send_request(request)).await {
            Ok(answer) => answer,
            Err(_) => {
                let detail = format!("`{}` did not respond in time", self.name);
                Err(unavailable_fault(&self.name, detail, "timeout"))
            }
        }
    }
}

/// What the server wants instead of this authorization, if it refused it.
fn refusal(
    head: &ResponseHead,
    shown: Option<&Authorization>,
    can_add_scopes: bool,
) -> Option<Refusal> {
    let needs_scopes = match head.status {
        StatusCode::UNAUTHORIZED => false,
        StatusCode::FORBIDDEN if can_add_scopes && has_error(head, "insufficient_scope") => true,
        _ => return None,
    };
    let (authorization, challenges) = (shown.cloned(), head.challenges.clone());
    Some(Refusal { authorization, needs_scopes, challenges })
}

fn asks_for_nonce(head: &ResponseHead) -> bool {
    has_error(head, "use_dpop_nonce")
}

/// Whether a challenge names this error (RFC 6750, section 3).
fn has_error(head: &ResponseHead, error: &str) -> bool {
    let challenges = Challenge::parse_all(head.challenges.iter().map(String::as_str));
    challenges.iter().any(|challenge| challenge.parameter("error") == Some(error))
}

fn is_harmless(name: &str) -> bool {
    ["accept-language", "user-agent"].contains(&&*name.to_ascii_lowercase())
}

/// Resolves a reference against `base`, if the result has the same origin.
pub(crate) fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let whole = match reference {
        _ if reference.starts_with("//") => format!("{}:{reference}", base.scheme_str()?),
        _ if reference.starts_with('/') => return with_path(base, reference),
        _ if reference.contains("://") => reference.to_owned(),
        _ if reference.starts_with('?') => {
            return with_path(base, &format!("{}{reference}", base.path()));
        }
        _ => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            return with_path(base, &format!("{folder}/{reference}"));
        }
    };
    let uri: Uri = whole.parse().ok()?;
    let is_same = uri.scheme() == base.scheme()
        && uri.host()?.eq_ignore_ascii_case(base.host()?)
        && port(&uri) == port(base)
        && !uri.authority()?.as_str().contains('@');
    is_same.then_some(uri)
}

fn with_path(base: &Uri, path: &str) -> Option<Uri> {
    let mut parts = base.clone().into_parts();
    parts.path_and_query = Some(path.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

/// The request target of this URL.
fn path(url: &Uri) -> PathAndQuery {
    url.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
}

/// The `Host` header; a default port is omitted.
fn host(url: &Uri) -> Option<HeaderValue> {
    let usual = default_port(url);
    let text = match url.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{}:{port}", url.host()?),
        None => url.host()?.to_owned(),
    };
    HeaderValue::from_str(&text).ok()
}

fn default_port(url: &Uri) -> u16 {
    if url.scheme_str() == Some("https") { 443 } else { 80 }
}

fn port(url: &Uri) -> u16 {
    url.port_u16().unwrap_or_else(|| default_port(url))
}

impl fmt::Debug for HttpAddress {
    /// Omits the URL and the headers, which may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_stay_within_their_origin() {
        let base: Uri = "http://host:8000/a/sse?x=1".parse().unwrap();
        let rows = [
            ("/messages?sid=1", Some("http://host:8000/messages?sid=1")),
            ("messages", Some("http://host:8000/a/messages")),
            ("?sid=2", Some("http://host:8000/a/sse?sid=2")),
            ("http://HOST:8000/m", Some("http://HOST:8000/m")),
            ("//host:8000/m", Some("http://host:8000/m")),
            ("http://host/m", None),
            ("https://host:8000/m", None),
            ("http://evil:8000/m", None),
            ("http://host:8000@evil/m", None),
            ("http://u:p@host:8000/m", None),
            ("//evil/m", None),
            ("file:///etc/passwd", None),
        ];
        for (reference, expected) in rows {
            let found = resolve(&base, reference).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), expected, "{reference}");
        }
    }

    #[test]
    fn a_url_with_a_password_is_refused_without_being_shown() {
        for url in ["http://u:secret@host/", "ftp://secret/", "/secret", "http://se cret/"] {
            let fault = HttpAddress::new("files", url).unwrap_err();
            assert!(fault.detail.contains("`files`"), "{}", fault.detail);
            assert!(!fault.detail.contains("cret"), "{}", fault.detail);
        }
        let target = HttpAddress::new("files", "http://host/").unwrap();
        let target = target.header("Authorization", "Bearer secret").unwrap();
        assert!(!format!("{target:?}").contains("secret"));
        assert!(target.header("a\nb", "c").is_err());
    }
}
