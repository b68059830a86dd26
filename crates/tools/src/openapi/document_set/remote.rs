//! Fetches a document from a URL, with the same limits as for a file and without the files it refers to.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use creole::internal::fetch::{AllowedAddresses, FetchError, FetchRequest, Fetcher};
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};

use crate::openapi::document_set::{DocumentSet, MAX_BYTES, decode_utf8, parse_document};
use crate::recipe::http::request::USER_AGENT_VALUE;

/// Maximum duration of fetching.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
/// The accepted media types.
const ACCEPT_VALUE: HeaderValue =
    HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");

/// The reason why a document is not available.
pub(crate) enum DocumentError {
    /// It could not be fetched; a later attempt may succeed.
    FetchFailed(String),
    /// The response is not a document; a later one may be.
    Unreadable(String),
    /// The document cannot be used.
    Invalid(String),
}

/// Fetches the document at a URL. The calling thread blocks.
pub(crate) fn fetch_document(url: &str, allow_private: bool) -> Result<DocumentSet, DocumentError> {
    let reach = if allow_private { AllowedAddresses::Anywhere } else { AllowedAddresses::Public };
    let owned = url.to_owned();
    // A separate thread, because this one may belong to a runtime, where blocking is not allowed.
    let text = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| DocumentError::FetchFailed(error.to_string()))?;
        let waiting =
            async { tokio::time::timeout(FETCH_TIMEOUT, fetch_text(&owned, reach)).await };
        let late = format!("no response within {} s", FETCH_TIMEOUT.as_secs());
        runtime.block_on(waiting).map_err(|_| DocumentError::FetchFailed(late))?
    });
    let broken = |_| DocumentError::FetchFailed("the fetch panicked".to_owned());
    let text = text.join().map_err(broken)??;
    let name = url.split(['?', '#']).next().unwrap_or_default();
    Ok(DocumentSet::from_value("", parse_document(name, &text).map_err(DocumentError::Unreadable)?))
}

async fn fetch_text(url: &str, reach: AllowedAddresses) -> Result<String, DocumentError> {
    let fetcher = Fetcher::new(reach, url.starts_with("https:"));
    let unreadable = |_| DocumentError::Invalid("its URL is invalid".to_owned());
    let url = url.parse().map_err(unreadable)?;
    let headers = HeaderMap::from_iter([(USER_AGENT, USER_AGENT_VALUE), (ACCEPT, ACCEPT_VALUE)]);
    let sent = FetchRequest { method: Method::GET, url, headers, body: Bytes::new() };
    let max_length = usize::try_from(MAX_BYTES).unwrap_or(usize::MAX);
    let response = fetcher.fetch(&sent, max_length).await.map_err(|error| match error {
        // A retry would not help.
        error @ (FetchError::NotPublic | FetchError::TooLong) => {
            DocumentError::Invalid(error.to_string())
        }
        error => DocumentError::FetchFailed(error.to_string()),
    })?;
    match response.status().is_success() {
        true => decode_utf8(response.into_body().into()).map_err(DocumentError::Unreadable),
        false => {
            let status = response.status().as_u16();
            Err(DocumentError::FetchFailed(format!("the response has status {status}")))
        }
    }
}
