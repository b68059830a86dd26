//! Caches an authorization for all requests to a server, and fetches it again once for all requests that were refused.

use crate::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole_proto::fault::Fault;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{Authorization, Credentials, token};

/// How long a fetch may take.
pub(crate) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a fetch that failed or returned a refused value: a source that is permanently wrong must not be
/// called with every request.
const RETRY_PAUSE: Duration = Duration::from_secs(5);

/// The authorization for one server. Clones share it.
#[derive(Clone)]
pub(crate) struct TokenCache {
    source: Arc<dyn Credentials>,
    server: Arc<str>,
    state: Arc<Mutex<TokenCacheState>>,
}

type FetchResult = Result<Authorization, Fault>;

#[derive(Default)]
struct TokenCacheState {
    current: Option<Authorization>,
    /// The running fetch. Its sender is dropped when the value is stored.
    fetching: Option<watch::Receiver<Option<FetchResult>>>,
    /// When the last useless fetch was, and its fault if it returned nothing.
    paused: Option<(Instant, Option<Fault>)>,
}

impl TokenCache {
    pub(crate) fn new(server: Arc<str>, source: Arc<dyn Credentials>) -> Self {
        Self { source, server, state: Arc::default() }
    }

    /// The authorization.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn current(&self) -> Result<Authorization, Fault> {
        let fetching = {
            let mut state = self.lock();
            if let Some(current) = &state.current {
                return Ok(current.clone());
            }
            match state.pause() {
                Some(Some(fault)) => return Err(fault.clone()),
                _ => self.fetch(&mut state, None),
            }
        };
        self.wait(fetching).await
    }

    /// The authorization that replaces a refused one; `None` if there is no other, or was none a moment ago.
    ///
    /// # Errors
    /// When the fetch fails.
    pub(crate) async fn replace_refused(
        &self,
        refused: &Authorization,
    ) -> Result<Option<Authorization>, Fault> {
        let fetching = {
            let mut state = self.lock();
            if let Some(current) = state.current.as_ref().filter(|current| *current != refused) {
                return Ok(Some(current.clone()));
            }
            match state.pause() {
                Some(Some(fault)) => return Err(fault.clone()),
                Some(None) => return Ok(None),
                None => self.fetch(&mut state, Some(refused.clone())),
            }
        };
        let authorization = self.wait(fetching).await?;
        Ok(Some(authorization).filter(|authorization| authorization != refused))
    }

    /// Starts a fetch, unless one is running. It runs in a task, because the waiting request may be dropped.
    fn fetch(
        &self,
        state: &mut TokenCacheState,
        refused: Option<Authorization>,
    ) -> watch::Receiver<Option<FetchResult>> {
        if let Some(fetching) = state.fetching.as_ref().filter(|it| it.has_changed().is_ok()) {
            return fetching.clone();
        }
        let (sender, fetching) = watch::channel(None);
        let (own, fetch) = (self.clone(), self.source.fetch(refused.clone()));
        tokio::spawn(async move {
            let fetched =
                timeout(FETCH_TIMEOUT, fetch).await.unwrap_or_else(|_| Err(own.timeout_fault()));
            own.lock().store_fetched(&fetched, refused.is_some());
            sender.send_replace(Some(fetched));
        });
        state.fetching = Some(fetching.clone());
        fetching
    }

    async fn wait(&self, mut fetching: watch::Receiver<Option<FetchResult>>) -> FetchResult {
        let fetched = fetching.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
        // A source that panics has fetched nothing.
        fetched.unwrap_or_else(|| {
            Err(token::missing_token(&self.server, "the fetch of the token was aborted"))
        })
    }

    fn timeout_fault(&self) -> Fault {
        let seconds = FETCH_TIMEOUT.as_secs();
        token::missing_token(&self.server, &format!("no token within {seconds} s"))
    }

    fn lock(&self) -> MutexGuard<'_, TokenCacheState> {
        self.state.lock()
    }
}

impl TokenCacheState {
    fn pause(&self) -> Option<&Option<Fault>> {
        let (since, fault) = self.paused.as_ref()?;
        (since.elapsed() < RETRY_PAUSE).then_some(fault)
    }

    fn store_fetched(&mut self, fetched: &FetchResult, was_refused: bool) {
        self.paused = match fetched {
            Ok(authorization) => {
                self.current = Some(authorization.clone());
                was_refused.then(|| (Instant::now(), None))
            }
            Err(fault) => Some((Instant::now(), Some(fault.clone()))),
        };
    }
}

#[cfg(test)]
mod tests;
