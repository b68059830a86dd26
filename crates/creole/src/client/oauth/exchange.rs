//! Sends the requests of logins over HTTP, within limits of time, size and addresses.

mod document_cache;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use creole_oauth::error::OAuthError;
use creole_oauth::http::document::MAX_DOCUMENT_BYTES;
use creole_oauth::http::exchange::{Body, Exchange, Reach, Request, Response};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::time::{sleep, timeout};

use self::document_cache::DocumentCache;
use crate::client::transport::http::conn::address_filter::is_public;
use crate::client::transport::http::fetch::{AllowedAddresses, FetchError, FetchRequest, Fetcher};
use crate::sync::Mutex;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// How many redirects are followed, all within one origin.
const MAX_REDIRECTS: usize = 3;

/// A client for one reach, with or without encryption.
#[derive(Debug)]
struct ReachFetcher {
    reach: Reach,
    is_encrypted: bool,
    fetcher: Fetcher,
}

/// Sends the requests of logins. Clones share their connections and documents.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpExchange {
    fetchers: Arc<Mutex<Vec<ReachFetcher>>>,
    /// The documents that were read a short time ago, if they are kept.
    documents: Option<Arc<Mutex<DocumentCache>>>,
    /// The trusted root certificates, if they are not the system's.
    certificates: Option<Arc<[u8]>>,
}

impl HttpExchange {
    /// Trusts these root certificates in PEM form, or else the system's.
    pub(crate) fn new(certificates: Option<Arc<[u8]>>) -> Self {
        Self { certificates, ..Self::default() }
    }

    /// The same with a cache for documents.
    #[must_use]
    pub(super) fn with_documents(self) -> Self {
        Self { documents: Some(Arc::default()), ..self }
    }

    /// Lets the next discovery read all documents anew.
    pub(super) fn forget_documents(&self) {
        if let Some(documents) = &self.documents {
            documents.lock().clear();
        }
    }

    fn fetcher(&self, reach: Reach, is_encrypted: bool) -> Fetcher {
        let mut fetchers = self.fetchers.lock();
        let is_same = |it: &&ReachFetcher| it.reach == reach && it.is_encrypted == is_encrypted;
        if let Some(known) = fetchers.iter().find(is_same) {
            return known.fetcher.clone();
        }
        let allowed = match reach {
            Reach::Public => AllowedAddresses::Public,
            Reach::Anywhere => AllowedAddresses::Anywhere,
        };
        let fetcher = Fetcher::new(allowed, is_encrypted)
            .with_certificates(self.certificates.clone())
            .with_max_redirects(MAX_REDIRECTS);
        fetchers.push(ReachFetcher { reach, is_encrypted, fetcher: fetcher.clone() });
        fetcher
    }
}

impl Exchange for HttpExchange {
    async fn send(&self, request: Request) -> Result<Response, OAuthError> {
        let Some(documents) = &self.documents else { return self.send_now(&request).await };
        let known = documents.lock().find(&request);
        if let Some(known) = known {
            return Ok(known);
        }
        let response = self.send_now(&request).await?;
        documents.lock().add(request, &response);
        Ok(response)
    }

    async fn wait(&self, seconds: u64) {
        sleep(Duration::from_secs(seconds)).await;
    }

    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

impl HttpExchange {
    async fn send_now(&self, request: &Request) -> Result<Response, OAuthError> {
        let unreachable = |reason: &str| OAuthError::Unreachable {
            url: request.url.without_query().to_owned(),
            reason: reason.to_owned(),
        };
        // The document of another server named this host. Other names are filtered when they are resolved.
        let literal = request.url.host().parse::<IpAddr>();
        let is_private =
            request.url.is_loopback() || literal.is_ok_and(|address| !is_public(address));
        if request.reach == Reach::Public && is_private {
            return Err(unreachable("the address is not public"));
        }
        let fetched =
            fetch_request(request).ok_or_else(|| unreachable("the request cannot be written"))?;
        let fetcher = self.fetcher(request.reach, request.url.is_https());
        let response =
            match timeout(REQUEST_TIMEOUT, fetcher.fetch(&fetched, MAX_DOCUMENT_BYTES)).await {
                Ok(Ok(response)) => response,
                Ok(Err(FetchError::TooLong)) => {
                    return Err(unreachable("the response is longer than 64 KiB"));
                }
                Ok(Err(error)) => return Err(unreachable(&error.to_string())),
                Err(_) => return Err(unreachable("there was no response within 10 s")),
            };
        let nonce = response.headers().get("dpop-nonce").and_then(|value| value.to_str().ok());
        Ok(Response {
            status: response.status().as_u16(),
            dpop_nonce: nonce.map(str::to_owned),
            max_age: max_age(response.headers()),
            body: response.body().to_vec(),
        })
    }
}

/// How long a response may be kept, in seconds (RFC 9111, section 5.2.2.1). `no-store` and `no-cache` count as zero.
fn max_age(headers: &HeaderMap) -> Option<u64> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let directives: Vec<_> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
    let is = |name: &str| directives.iter().any(|it| it.eq_ignore_ascii_case(name));
    if is("no-store") || is("no-cache") {
        return Some(0);
    }
    let age = |it: &&str| {
        let (name, seconds) = it.split_once('=')?;
        let seconds = seconds.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("max-age").then(|| seconds.parse().ok())?
    };
    directives.iter().find_map(age)
}

fn fetch_request(request: &Request) -> Option<FetchRequest> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("creole/", env!("CARGO_PKG_VERSION"))),
    );
    for (name, value) in &request.headers {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(name), value);
    }
    let (method, body) = match &request.body {
        None => (Method::GET, Bytes::new()),
        Some(body) => {
            let (kind, text) = match body {
                Body::Form(text) => ("application/x-www-form-urlencoded", text),
                Body::Json(text) => ("application/json", text),
            };
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            (Method::POST, Bytes::from(text.clone()))
        }
    };
    let url = request.url.as_str().parse().ok()?;
    Some(FetchRequest { method, url, headers, body })
}

#[cfg(test)]
mod tests;
