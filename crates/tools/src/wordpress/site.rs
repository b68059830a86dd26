//! A site and what it is asked, within limits of size and time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use creole::client::http::fetch::{Fetcher, Reach, Sent, Unfetched};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Response};
use serde_json::Value;

use super::Settings;
use super::address::{Address, Links};
pub(super) use super::form::File;
use super::platform::Platform;
use super::proof::Proof;
use super::strikes::Strikes;
use super::trouble::{Refusal, Trouble};
use super::visitors::Visitors;
use crate::ordered_value::OrderedValue;

/// The longest answer that is read: the whole route index of a large site is a third of a megabyte.
const LONGEST: usize = 8 * 1024 * 1024;

/// A WordPress site; clones are the same one.
#[derive(Clone)]
pub struct Site {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) settings: Settings,
    fetcher: Fetcher,
    /// Whether the site has no permalinks, as far as is known.
    is_plain: AtomicBool,
    pub(super) visitors: Visitors,
    pub(super) platform: Platform,
    pub(super) strikes: Strikes,
}

/// One request to a route of the site.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Asked {
    pub(super) method: Method,
    /// The route, such as `/wp/v2/users/me`; what callers said is encoded in it.
    pub(super) route: String,
    pub(super) query: Vec<(String, String)>,
    pub(super) body: Option<Value>,
    /// A file that is sent instead of a body.
    pub(super) file: Option<File>,
}

impl Asked {
    /// A request of that method.
    pub(super) fn new(method: Method, route: impl Into<String>) -> Self {
        Self { method, route: route.into(), ..Self::default() }
    }

    /// A request that only reads.
    pub(super) fn get(route: impl Into<String>) -> Self {
        Self::new(Method::GET, route)
    }

    /// The same with a parameter.
    pub(super) fn with(mut self, key: &str, value: impl fmt::Display) -> Self {
        self.query.push((key.to_owned(), value.to_string()));
        self
    }

    /// The same with a body.
    pub(super) fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// The same with a file.
    pub(super) fn file(mut self, file: File) -> Self {
        self.file = Some(file);
        self
    }

    /// Whether it may change something.
    pub(super) fn is_write(&self) -> bool {
        ![Method::GET, Method::OPTIONS].contains(&self.method)
    }
}

/// What the site answered.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answered {
    /// What it says, to be looked into.
    pub(super) body: Value,
    /// The same as the caller is told it.
    pub(super) shown: OrderedValue,
    /// How many items there are in all, and on how many pages.
    pub(super) extent: Option<(u64, u64)>,
    /// What the caller is told besides.
    pub(super) notes: Vec<String>,
}

impl Answered {
    /// What is made of several answers.
    pub(super) fn made(shown: OrderedValue) -> Self {
        Self { body: shown.to_value(), shown, extent: None, notes: Vec::new() }
    }

    /// The same with something that the caller is told besides.
    pub(super) fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

impl Site {
    /// A site that nothing is asked of yet.
    pub fn new(settings: Settings) -> Self {
        Self::with(settings, Visitors::default())
    }

    /// The same site with other settings. Whoever was let in before may still begin a call.
    #[must_use]
    pub fn succeed(&self, settings: Settings) -> Self {
        Self::with(settings, self.shared.visitors.successor())
    }

    fn with(settings: Settings, visitors: Visitors) -> Self {
        // Who runs the server named the site, so it may be on this machine or in a private network.
        let fetcher = Fetcher::new(Reach::Anywhere, settings.address.is_encrypted());
        let (platform, strikes) = (Platform::default(), Strikes::default());
        let is_plain = AtomicBool::new(false);
        let shared = Shared { settings, fetcher, is_plain, visitors, platform, strikes };
        Self { shared: Arc::new(shared) }
    }

    /// What was known of it before anything was asked.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.shared.settings.address
    }

    /// Asks the site as somebody, or as nobody.
    pub(super) async fn ask(
        &self,
        proof: Option<&Proof>,
        asked: &Asked,
    ) -> Result<Answered, Trouble> {
        let is_plain = self.shared.is_plain.load(Ordering::Relaxed);
        let links = if is_plain { Links::Plain } else { Links::Pretty };
        let first = self.send(proof, asked, links).await;
        // A site without permalinks does not know the folder `wp-json`; a front controller answers it with the front
        // page. What writes is not sent twice after a page that may come from WordPress.
        let is_lost = match &first {
            Err(Trouble::NotJson { status: 404, .. }) => true,
            Err(Trouble::NotJson { status: 200..300, .. }) => !asked.is_write(),
            _ => false,
        };
        if !is_lost || is_plain {
            return first;
        }
        let second = self.send(proof, asked, Links::Plain).await;
        if !matches!(second, Ok(_) | Err(Trouble::Refused(_))) {
            return first;
        }
        self.shared.is_plain.store(true, Ordering::Relaxed);
        second
    }

    /// Whether the site was found to have no permalinks.
    pub(super) fn is_plain(&self) -> bool {
        self.shared.is_plain.load(Ordering::Relaxed)
    }

    async fn send(
        &self,
        proof: Option<&Proof>,
        asked: &Asked,
        links: Links,
    ) -> Result<Answered, Trouble> {
        let url = self.address().route(&asked.route, &asked.query, links);
        let url = url.ok_or_else(|| Trouble::Unconnected("the address is too long".to_owned()))?;
        let (media_type, body) = match (&asked.file, &asked.body) {
            (Some(file), _) => {
                let (media_type, body) = file.form();
                (HeaderValue::try_from(media_type).ok(), Bytes::from(body))
            }
            (None, Some(body)) => {
                (Some(HeaderValue::from_static("application/json")), Bytes::from(body.to_string()))
            }
            (None, None) => (None, Bytes::new()),
        };
        let headers = headers(proof, media_type);
        let sent = Sent { method: asked.method.clone(), url, headers, body };
        let patience = self.shared.settings.timeout;
        let work = async {
            match self.shared.fetcher.fetch(&sent, LONGEST).await {
                // What only reads may be tried again; what writes, never.
                Err(Unfetched::Unreachable(_) | Unfetched::Unconnected(_)) if !asked.is_write() => {
                    self.shared.fetcher.fetch(&sent, LONGEST).await
                }
                answer => answer,
            }
        };
        match tokio::time::timeout(patience, work).await {
            Err(_) => Err(Trouble::Late(patience)),
            Ok(Err(why @ (Unfetched::Unconnected(_) | Unfetched::NotPublic))) => {
                Err(Trouble::Unconnected(why.to_string()))
            }
            Ok(Err(why)) => Err(Trouble::Unreachable(why.to_string())),
            Ok(Ok(answer)) => read(&answer),
        }
    }
}

/// The headers of a request: nothing of the caller but the proof.
fn headers(proof: Option<&Proof>, media_type: Option<HeaderValue>) -> HeaderMap {
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

/// What an answer says: data, or a refusal in WordPress's form. Anything else is no answer of WordPress: an empty
/// body, a page for people, warnings of PHP before the data.
fn read(answer: &Response<Bytes>) -> Result<Answered, Trouble> {
    let status = answer.status();
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let shown: Option<OrderedValue> = serde_json::from_slice(answer.body()).ok();
    let Some(shown) = shown.filter(|_| !status.is_redirection()) else {
        tracing::warn!(status = status.as_u16(), "the site answered something that is not JSON");
        let media_type = header("content-type").unwrap_or("no media type").to_owned();
        return Err(Trouble::NotJson { status: status.as_u16(), media_type });
    };
    let body = shown.to_value();
    if status.is_success() {
        let number = |name: &str| header(name).and_then(|text| text.trim().parse().ok());
        let extent = number("x-wp-total").zip(number("x-wp-totalpages"));
        return Ok(Answered { body, shown, extent, notes: Vec::new() });
    }
    let refusal = Refusal::read(status.as_u16(), &body);
    let mut refusal = refusal.unwrap_or_else(|| Refusal {
        status: status.as_u16(),
        code: "no_reason".to_owned(),
        ..Refusal::default()
    });
    let wait = header(RETRY_AFTER.as_str()).and_then(|text| text.trim().parse().ok());
    refusal.retry_after = wait;
    Err(Trouble::Refused(refusal))
}

impl fmt::Debug for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Site").field("address", self.address()).finish_non_exhaustive()
    }
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}
