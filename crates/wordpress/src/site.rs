//! A site and its requests, with limits on size and time.

pub(crate) mod address;
pub(crate) mod form_file;
pub(crate) mod platform;
pub(crate) mod site_error;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use creole::internal::fetch::{AllowedAddresses, FetchError, FetchRequest, Fetcher};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Response};
use serde_json::Value;

use super::SiteSettings;
use crate::login::basic_credentials::BasicCredentials;
use crate::login::login_throttle::LoginThrottle;
use crate::login::users::UserCache;
use crate::site::address::{LinkStyle, SiteAddress};
pub(super) use crate::site::form_file::FormFile;
use crate::site::platform::PlatformCache;
use crate::site::site_error::{SiteError, WordPressError};
use creole_tools::ordered_value::OrderedValue;

/// Maximum size of a response, in bytes. The whole route index of a large site is a third of a megabyte.
const MAX_RESPONSE_BYTES: usize = 8 * 1024 * 1024;

/// A WordPress site; clones share its state.
#[derive(Clone)]
pub struct Site {
    pub(super) inner: Arc<SiteInner>,
}

pub(super) struct SiteInner {
    pub(super) settings: SiteSettings,
    fetcher: Fetcher,
    /// Whether the site was found to have no permalinks.
    is_plain: AtomicBool,
    pub(super) users: UserCache,
    pub(super) platform: PlatformCache,
    pub(super) login_throttle: LoginThrottle,
}

/// One request to a route of the site.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SiteRequest {
    pub(super) method: Method,
    /// The route, such as `/wp/v2/users/me`, with encoded arguments.
    pub(super) route: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Option<Value>,
    /// A file that is sent instead of a body.
    pub(super) file: Option<FormFile>,
}

impl SiteRequest {
    /// A request with this method.
    pub(super) fn new(method: Method, route: impl Into<String>) -> Self {
        Self { method, route: route.into(), ..Self::default() }
    }

    /// A reading request.
    pub(super) fn get(route: impl Into<String>) -> Self {
        Self::new(Method::GET, route)
    }

    /// Adds a query parameter.
    pub(super) fn with_query(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.query.push((key.to_owned(), value.to_string()));
        self
    }

    /// Sets the body.
    pub(super) fn with_body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// Sets the file.
    pub(super) fn with_file(mut self, file: FormFile) -> Self {
        self.file = Some(file);
        self
    }

    /// Whether it may change data.
    pub(super) fn is_write(&self) -> bool {
        ![Method::GET, Method::OPTIONS].contains(&self.method)
    }
}

/// A response of the site.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SiteResponse {
    /// The body, for inspection.
    pub(super) body: Value,
    /// The body as shown to the caller.
    pub(super) display: OrderedValue,
    /// The total number of items and pages.
    pub(super) totals: Option<(u64, u64)>,
    /// Notes for the caller.
    pub(super) notes: Vec<String>,
}

impl SiteResponse {
    /// A response that combines several others.
    pub(super) fn from_display(shown: OrderedValue) -> Self {
        Self { body: shown.to_value(), display: shown, totals: None, notes: Vec::new() }
    }

    /// Adds a note for the caller.
    pub(super) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl Site {
    /// A site to which nothing was sent yet.
    pub fn new(settings: SiteSettings) -> Self {
        Self::build(settings, UserCache::default())
    }

    /// The same site with other settings. Users that were admitted before may still begin a call.
    #[must_use]
    pub fn with_settings(&self, settings: SiteSettings) -> Self {
        Self::build(settings, self.inner.users.for_new_settings())
    }

    fn build(settings: SiteSettings, users: UserCache) -> Self {
        // The operator configured the site, so it may be on this machine or in a private network.
        let fetcher = Fetcher::new(AllowedAddresses::Anywhere, settings.address.is_encrypted());
        let (platform, throttle) = (PlatformCache::default(), LoginThrottle::default());
        let is_plain = AtomicBool::new(false);
        let shared =
            SiteInner { settings, fetcher, is_plain, users, platform, login_throttle: throttle };
        Self { inner: Arc::new(shared) }
    }

    /// Its settings.
    pub fn settings(&self) -> &SiteSettings {
        &self.inner.settings
    }

    /// Its address.
    pub fn address(&self) -> &SiteAddress {
        &self.inner.settings.address
    }

    /// Sends a request, with or without credentials.
    pub(super) async fn request(
        &self,
        proof: Option<&BasicCredentials>,
        received: &SiteRequest,
    ) -> Result<SiteResponse, SiteError> {
        let is_plain = self.inner.is_plain.load(Ordering::Relaxed);
        let links = if is_plain { LinkStyle::Plain } else { LinkStyle::Pretty };
        let first = self.send(proof, received, links).await;
        // A site without permalinks does not have the path `wp-json`; a front controller responds with the front page.
        // A write is not repeated after a page that may come from WordPress.
        let is_lost = match &first {
            Err(SiteError::NotJson { status: 404, .. }) => true,
            Err(SiteError::NotJson { status: 200..300, .. }) => !received.is_write(),
            _ => false,
        };
        if !is_lost || is_plain {
            return first;
        }
        let second = self.send(proof, received, LinkStyle::Plain).await;
        if !matches!(second, Ok(_) | Err(SiteError::Refused(_))) {
            return first;
        }
        self.inner.is_plain.store(true, Ordering::Relaxed);
        second
    }

    /// Whether the site was found to have no permalinks.
    pub(super) fn uses_plain_links(&self) -> bool {
        self.inner.is_plain.load(Ordering::Relaxed)
    }

    async fn send(
        &self,
        proof: Option<&BasicCredentials>,
        request: &SiteRequest,
        links: LinkStyle,
    ) -> Result<SiteResponse, SiteError> {
        let url = self.address().route(&request.route, &request.query, links);
        let url =
            url.ok_or_else(|| SiteError::NotConnected("the address is too long".to_owned()))?;
        let (media_type, body) = match (&request.file, &request.body) {
            (Some(file), _) => {
                let (media_type, body) = file.to_multipart();
                (HeaderValue::try_from(media_type).ok(), Bytes::from(body))
            }
            (None, Some(body)) => {
                (Some(HeaderValue::from_static("application/json")), Bytes::from(body.to_string()))
            }
            (None, None) => (None, Bytes::new()),
        };
        let headers = headers(proof, media_type);
        let sent = FetchRequest { method: request.method.clone(), url, headers, body };
        let patience = self.inner.settings.timeout;
        let work = async {
            match self.inner.fetcher.fetch(&sent, MAX_RESPONSE_BYTES).await {
                // Reads may be retried, writes never.
                Err(FetchError::Unreachable(_) | FetchError::ConnectFailed(_))
                    if !request.is_write() =>
                {
                    self.inner.fetcher.fetch(&sent, MAX_RESPONSE_BYTES).await
                }
                response => response,
            }
        };
        match tokio::time::timeout(patience, work).await {
            Err(_) => Err(SiteError::TimedOut(patience)),
            Ok(Err(error @ (FetchError::ConnectFailed(_) | FetchError::NotPublic))) => {
                Err(SiteError::NotConnected(error.to_string()))
            }
            Ok(Err(error)) => Err(SiteError::Unreachable(error.to_string())),
            Ok(Ok(response)) => read_response(&response),
        }
    }
}

/// The headers of a request. Of the caller's headers it contains only the credentials.
fn headers(proof: Option<&BasicCredentials>, media_type: Option<HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("creole"));
    if let Some(proof) = proof {
        headers.insert(AUTHORIZATION, proof.header().clone());
    }
    if let Some(media_type) = media_type {
        headers.insert(CONTENT_TYPE, media_type);
    }
    headers
}

/// Reads a response: data, or an error in the format of WordPress. Anything else does not come from WordPress: an empty
/// body, an HTML page, PHP warnings before the data.
fn read_response(response: &Response<Bytes>) -> Result<SiteResponse, SiteError> {
    let status = response.status();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let shown: Option<OrderedValue> = serde_json::from_slice(response.body()).ok();
    let Some(shown) = shown.filter(|_| !status.is_redirection()) else {
        tracing::warn!(status = status.as_u16(), "the site's response is not JSON");
        let media_type = header("content-type").unwrap_or("no media type").to_owned();
        return Err(SiteError::NotJson { status: status.as_u16(), media_type });
    };
    let body = shown.to_value();
    if status.is_success() {
        let number = |name: &str| header(name).and_then(|text| text.trim().parse().ok());
        let extent = number("x-wp-total").zip(number("x-wp-totalpages"));
        return Ok(SiteResponse { body, display: shown, totals: extent, notes: Vec::new() });
    }
    let refusal = WordPressError::read(status.as_u16(), &body);
    let mut refusal = refusal.unwrap_or_else(|| WordPressError {
        status: status.as_u16(),
        code: "no_reason".to_owned(),
        ..WordPressError::default()
    });
    let wait = header(RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    refusal.retry_after = wait;
    Err(SiteError::Refused(refusal))
}

impl fmt::Debug for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Site").field("address", self.address()).finish_non_exhaustive()
    }
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
