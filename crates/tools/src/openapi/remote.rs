//! A document at an address: fetched within the same limits as a file, and without the files beside it.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use creole::client::http::fetch::{Fetcher, Reach, Sent, Unfetched};
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};

use super::library::{Library, MOST_BYTES, parsed, utf_8};
use crate::recipe::http::request::AGENT;

/// How long fetching may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// What we like to have.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");

/// Why there is no document.
pub(super) enum NoDocument {
    /// It could not be fetched now; later it may be.
    Unfetched(String),
    /// What was fetched is no document; later there may be one.
    Unreadable(String),
    /// It cannot be used.
    Unusable(String),
}

/// The document at an address. Whoever asks waits for it, on whatever thread that is.
pub(super) fn fetched(url: &str, allow_private: bool) -> Result<Library, NoDocument> {
    let reach = if allow_private { Reach::Anywhere } else { Reach::Public };
    let owned = url.to_owned();
    // A thread of its own: this one may belong to a runtime, where nobody may wait.
    let text = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| NoDocument::Unfetched(error.to_string()))?;
        let waiting = async { tokio::time::timeout(PATIENCE, text(&owned, reach)).await };
        let late = format!("it took longer than {} s", PATIENCE.as_secs());
        runtime.block_on(waiting).map_err(|_| NoDocument::Unfetched(late))?
    });
    let broken = |_| NoDocument::Unfetched("fetching it broke down".to_owned());
    let text = text.join().map_err(broken)??;
    let name = url.split(['?', '#']).next().unwrap_or_default();
    Ok(Library::of("", parsed(name, &text).map_err(NoDocument::Unreadable)?))
}

async fn text(url: &str, reach: Reach) -> Result<String, NoDocument> {
    let fetcher = Fetcher::new(reach, url.starts_with("https:"));
    let unreadable = |_| NoDocument::Unusable("its address cannot be read".to_owned());
    let url = url.parse().map_err(unreadable)?;
    let headers = HeaderMap::from_iter([(USER_AGENT, AGENT), (ACCEPT, ACCEPTED)]);
    let sent = Sent { method: Method::GET, url, headers, body: Bytes::new() };
    let longest = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let answer = fetcher.fetch(&sent, longest).await.map_err(|why| match why {
        // Asking again would not help.
        why @ (Unfetched::NotPublic | Unfetched::TooLong) => NoDocument::Unusable(why.to_string()),
        why => NoDocument::Unfetched(why.to_string()),
    })?;
    match answer.status().is_success() {
        true => utf_8(answer.into_body().into()).map_err(NoDocument::Unreadable),
        false => {
            let status = answer.status().as_u16();
            Err(NoDocument::Unfetched(format!("the answer has status {status}")))
        }
    }
}
