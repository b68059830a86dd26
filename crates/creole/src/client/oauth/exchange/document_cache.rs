//! The documents of authorization servers that were read a short time ago.

use std::time::Duration;

use creole_oauth::http::exchange::{Request, Response};
use tokio::time::Instant;

/// How long a document is used, unless its server allows less.
const LIFETIME: Duration = Duration::from_secs(600);

/// The maximum number of documents. One discovery reads at most eight.
const MAX_DOCUMENTS: usize = 8;

/// The documents of the last minutes, the oldest first. Missing ones are remembered too.
#[derive(Debug, Default)]
pub(super) struct DocumentCache(Vec<CachedDocument>);

#[derive(Debug)]
struct CachedDocument {
    request: Request,
    response: Response,
    read_at: Instant,
}

impl CachedDocument {
    fn is_current(&self) -> bool {
        let allowed = self.response.max_age.map_or(LIFETIME, Duration::from_secs);
        self.read_at.elapsed() < allowed.min(LIFETIME)
    }
}

impl DocumentCache {
    /// The response to an equal request.
    pub(super) fn find(&mut self, request: &Request) -> Option<Response> {
        self.0.retain(CachedDocument::is_current);
        self.0.iter().find(|known| known.request == *request).map(|known| known.response.clone())
    }

    /// Adds a document, or that it is missing. Responses to other requests are not kept.
    pub(super) fn add(&mut self, request: Request, response: &Response) {
        if request.body.is_some() || !matches!(response.status, 200 | 404) {
            return;
        }
        if self.0.len() >= MAX_DOCUMENTS {
            self.0.remove(0);
        }
        let response = response.clone();
        self.0.push(CachedDocument { request, response, read_at: Instant::now() });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use creole_oauth::http::exchange::{Body, Reach, Request, Response};
    use creole_oauth::web_url::WebUrl;
    use tokio::time::{Duration, advance};

    use super::{DocumentCache, LIFETIME, MAX_DOCUMENTS};

    fn get(path: &str) -> Request {
        let url = WebUrl::parse(&format!("https://id.example.com/{path}")).unwrap();
        Request { url, reach: Reach::Public, headers: Vec::new(), body: None }
    }

    fn response(status: u16) -> Response {
        Response { status, dpop_nonce: None, max_age: None, body: b"{}".to_vec() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_document_is_used_for_ten_minutes() {
        let mut cache = DocumentCache::default();
        cache.add(get("a"), &response(200));
        assert_eq!(cache.find(&get("b")), None);
        advance(LIFETIME - Duration::from_secs(1)).await;
        assert_eq!(cache.find(&get("a")), Some(response(200)));
        advance(Duration::from_secs(1)).await;
        assert_eq!(cache.find(&get("a")), None);
        cache.add(get("b"), &Response { max_age: Some(60), ..response(200) });
        advance(Duration::from_secs(60)).await;
        assert_eq!(cache.find(&get("b")), None);
    }

    #[tokio::test]
    async fn only_documents_are_kept_and_not_many() {
        let mut cache = DocumentCache::default();
        cache.add(get("failed"), &response(503));
        let form = Request { body: Some(Body::Form("code=x".to_owned())), ..get("token") };
        cache.add(form.clone(), &response(200));
        assert_eq!((cache.find(&get("failed")), cache.find(&form)), (None, None));
        for number in 0..=MAX_DOCUMENTS {
            cache.add(get(&number.to_string()), &response(404));
        }
        assert_eq!(cache.0.len(), MAX_DOCUMENTS);
        assert_eq!(cache.find(&get("0")), None);
        assert!(cache.find(&get(&MAX_DOCUMENTS.to_string())).is_some());
        cache.clear();
        assert_eq!(cache.find(&get("1")), None);
    }
}
