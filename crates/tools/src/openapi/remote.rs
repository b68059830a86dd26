//! A document at an address: fetched within the same limits as a file, and without the files beside it.

use std::thread;
use std::time::Duration;

use bytes::Bytes;
use creole::client::http::fetch::{Fetcher, Reach, Sent};
use http::header::{ACCEPT, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method};

use super::library::{Library, MOST_BYTES, parsed, utf_8};
use crate::recipe::http::request::AGENT;

/// How long fetching may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// What we like to have.
const ACCEPTED: HeaderValue =
    HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");

/// The document at an address. Whoever asks waits for it, on whatever thread that is.
pub(super) fn fetched(url: &str, allow_private: bool) -> Result<Library, String> {
    let reach = if allow_private { Reach::Anywhere } else { Reach::Public };
    let owned = url.to_owned();
    // A thread of its own: this one may belong to a runtime, where nobody may wait.
    let text = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let waiting = async { tokio::time::timeout(PATIENCE, text(&owned, reach)).await };
        let late = format!("it took longer than {} s", PATIENCE.as_secs());
        runtime.block_on(waiting).map_err(|_| late)?
    });
    let text = text.join().map_err(|_| "fetching it broke down".to_owned())??;
    let name = url.split(['?', '#']).next().unwrap_or_default();
    Ok(Library::of("", parsed(name, &text)?))
}

async fn text(url: &str, reach: Reach) -> Result<String, String> {
    let fetcher = Fetcher::new(reach, url.starts_with("https:"));
    let url = url.parse().map_err(|_| "its address cannot be read".to_owned())?;
    let headers = HeaderMap::from_iter([(USER_AGENT, AGENT), (ACCEPT, ACCEPTED)]);
    let sent = Sent { method: Method::GET, url, headers, body: Bytes::new() };
    let longest = usize::try_from(MOST_BYTES).unwrap_or(usize::MAX);
    let answer = fetcher.fetch(&sent, longest).await.map_err(|why| why.to_string())?;
    match answer.status().is_success() {
        true => utf_8(answer.into_body().into()),
        false => Err(format!("the answer has status {}", answer.status().as_u16())),
    }
}
