//! Caches an authorization for all requests to a server, and fetches it again once for all requests that were refused.

use crate::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole_proto::fault::Fault;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{Authorization, Credentials, RETRY_PAUSE, Refusal, token};

/// The authorization for one server. Clones share it.
#[derive(Clone)]
pub(crate) struct TokenCache {
    source: Arc<dyn Credentials>,
    server: Arc<str>,
    state: Arc<Mutex<TokenCacheState>>,
}

type FetchResult = Result<Option<Authorization>, Fault>;

#[derive(Default)]
struct TokenCacheState {
    current: Option<Authorization>,
    /// Whether the source was asked before the first request and had nothing.
    has_none: bool,
    /// The running fetch. A fetch that panics drops its sender.
    fetching: Option<watch::Receiver<Option<FetchResult>>>,
    /// When the last useless fetch was, and its fault if it returned nothing.
    paused: Option<(Instant, Option<Fault>)>,
}

impl TokenCache {
    pub(crate) fn new(server: Arc<str>, source: Arc<dyn Credentials>) -> Self {
        Self { source, server, state: Arc::default() }
    }

    /// The authorization; `None` if the source has none before a refusal.
    ///
    /// # Errors
    /// When the fetch fails.
    pub(crate) async fn current(&self) -> FetchResult {
        let fetching = {
            let mut state = self.lock();
            let is_due = state.current.as_ref().is_some_and(Authorization::is_due);
            if !is_due && (state.current.is_some() || state.has_none) {
                return Ok(state.current.clone());
            }
            match self.pause(&state) {
                Some(Some(fault)) => return Err(fault),
                _ => self.fetch(&mut state, None),
            }
        };
        self.wait(fetching).await
    }

    /// The authorization that replaces a refused one; `None` if there is no other, or was none a moment ago.
    ///
    /// # Errors
    /// When the fetch fails.
    pub(crate) async fn replace_refused(&self, refusal: Refusal) -> FetchResult {
        let refused = refusal.authorization.clone();
        let fetching = {
            let mut state = self.lock();
            if state.current.is_some() && state.current != refused {
                return Ok(state.current.clone());
            }
            match self.pause(&state) {
                Some(Some(fault)) => return Err(fault),
                Some(None) => return Ok(None),
                None => self.fetch(&mut state, Some(refusal)),
            }
        };
        let authorization = self.wait(fetching).await?;
        Ok(authorization.filter(|it| Some(it) != refused.as_ref()))
    }

    /// Whether the next request may wait for a person.
    ///
    /// # Errors
    /// When the fetch fails.
    pub(crate) async fn may_ask_person(&self) -> Result<bool, Fault> {
        Ok(self.source.asks_person() && self.current().await?.is_none())
    }

    /// Whether the replacement of a refused authorization may wait for a person.
    pub(crate) fn asks_person(&self) -> bool {
        self.source.asks_person()
    }

    /// Whether the source can get a further scope.
    pub(crate) fn can_add_scopes(&self) -> bool {
        self.source.can_add_scopes()
    }

    /// The extension of the protocol that the source uses.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        self.source.extension()
    }

    /// How long a fetch may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.source.timeout()
    }

    /// Starts a fetch, unless one is running. It runs in a task, because the waiting request may be dropped.
    fn fetch(
        &self,
        state: &mut TokenCacheState,
        refusal: Option<Refusal>,
    ) -> watch::Receiver<Option<FetchResult>> {
        if let Some(fetching) = state.fetching.as_ref().filter(|it| it.has_changed().is_ok()) {
            return fetching.clone();
        }
        let (sender, fetching) = watch::channel(None);
        let was_refused = refusal.is_some();
        let (own, fetch) = (self.clone(), self.source.fetch(refusal));
        tokio::spawn(async move {
            let fetched =
                timeout(own.timeout(), fetch).await.unwrap_or_else(|_| Err(own.timeout_fault()));
            {
                let mut state = own.lock();
                state.store_fetched(&fetched, was_refused);
                // A request that is refused from now on needs a fetch of its own.
                state.fetching = None;
            }
            sender.send_replace(Some(fetched));
        });
        state.fetching = Some(fetching.clone());
        fetching
    }

    async fn wait(&self, mut fetching: watch::Receiver<Option<FetchResult>>) -> FetchResult {
        let fetched = tokio::select! {
            biased;
            fetched = fetching.wait_for(Option::is_some) => fetched.ok().and_then(|it| it.clone()),
            fault = self.source.until_released() => return Err(fault),
        };
        // A source that panics has fetched nothing.
        fetched.unwrap_or_else(|| {
            Err(token::missing_token(&self.server, "the fetch of the token was aborted"))
        })
    }

    fn timeout_fault(&self) -> Fault {
        let seconds = self.timeout().as_secs();
        token::missing_token(&self.server, &format!("no token within {seconds} s"))
    }

    /// The fault of the last useless fetch, during the pause after it.
    #[expect(
        clippy::option_option,
        reason = "the outer option is the pause, the inner one its fault"
    )]
    fn pause(&self, state: &TokenCacheState) -> Option<Option<Fault>> {
        let (since, why) = state.paused.as_ref()?;
        let is_limited = match why {
            Some(_) => !self.source.can_retry_now(),
            None => !self.source.limits_itself(),
        };
        (is_limited && since.elapsed() < RETRY_PAUSE).then(|| why.clone())
    }

    fn lock(&self) -> MutexGuard<'_, TokenCacheState> {
        self.state.lock()
    }
}

impl TokenCacheState {
    fn store_fetched(&mut self, fetched: &FetchResult, was_refused: bool) {
        self.paused = match fetched {
            Ok(authorization) => {
                self.current.clone_from(authorization);
                self.has_none = authorization.is_none() && !was_refused;
                was_refused.then(|| (Instant::now(), None))
            }
            Err(fault) => Some((Instant::now(), Some(fault.clone()))),
        };
    }
}

#[cfg(test)]
mod tests;
