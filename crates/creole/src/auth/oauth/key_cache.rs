//! The keys of one issuer, fetched when they are needed.
//!
//! Old keys serve while the issuer cannot be reached. A caller can cause few requests: a key that is not known is looked
//! for once a minute, whichever caller sends it.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use creole_oauth::error::OAuthError;
use creole_oauth::http::document::MAX_DOCUMENT_BYTES;
use creole_oauth::resource::algorithm::SignatureAlgorithm;
use creole_oauth::resource::discovery::{
    FetchedKeys, IssuerMetadata, configured_reach, fetch_keys, fetch_metadata, named_reach,
};
use creole_oauth::resource::key_set::KeySet;
use creole_oauth::web_url::WebUrl;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::exchange::IssuerExchange;
use super::settings::{IssuerSettings, KeySource};
use crate::sync::Mutex;

/// How long keys are used without a new fetch, if the issuer does not say it.
const DEFAULT_AGE: Duration = Duration::from_secs(3_600);
const MIN_AGE: Duration = Duration::from_secs(300);
const MAX_AGE: Duration = Duration::from_secs(86_400);

/// How long keys serve after the last success.
const STALE: Duration = Duration::from_secs(86_400);

/// How often an unknown key may cause a fetch.
const UNKNOWN_KEY_PERIOD: Duration = Duration::from_secs(60);

/// How long a caller waits for a fetch.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// How long one fetch with all its documents may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest time between two failing fetches: with keys, and without any. Callers without keys are told to return
/// after five seconds.
const MAX_RETRY: Duration = Duration::from_secs(60);
const MAX_RETRY_WITHOUT_KEYS: Duration = Duration::from_secs(4);

/// How often a failing fetch is logged.
const WARNING_PERIOD: Duration = Duration::from_secs(60);

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissingKey {
    /// The issuer has keys, and not this one.
    Unknown,
    /// No keys of the issuer are known.
    NoKeys,
}

/// The keys of one issuer. Clones share them.
#[derive(Clone)]
pub(super) struct KeyCache {
    shared: Arc<Shared>,
}

struct Shared {
    label: Arc<str>,
    issuer: String,
    source: KeySource,
    allows_private: bool,
    exchange: IssuerExchange,
    /// Increases with every change of the keys.
    version: AtomicU64,
    state: Mutex<KeyState>,
}

#[derive(Default)]
struct KeyState {
    current: Option<Current>,
    metadata: Option<Arc<IssuerMetadata>>,
    /// Whether the next fetch begins with the metadata: it may name an address that is no longer right.
    is_metadata_old: bool,
    running: Option<watch::Receiver<()>>,
    failures: u32,
    retry_at: Option<Instant>,
    /// When an unknown key last caused a fetch.
    searched_at: Option<Instant>,
    warned_at: Option<Instant>,
}

struct Current {
    keys: Arc<KeySet>,
    fetched_at: Instant,
    renew_at: Instant,
}

impl KeyCache {
    pub(super) fn new(settings: &IssuerSettings, exchange: IssuerExchange) -> Self {
        let shared = Shared {
            label: Arc::clone(&settings.label),
            issuer: settings.rules.issuer.clone(),
            source: settings.keys.clone(),
            allows_private: settings.allows_private,
            exchange,
            version: AtomicU64::new(0),
            state: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A number that changes with the keys.
    pub(super) fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// The keys, if one of them may have signed a token with this key id and algorithm.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: SignatureAlgorithm,
    ) -> Result<Arc<KeySet>, MissingKey> {
        let keys = self.load().await.ok_or(MissingKey::NoKeys)?;
        let has_key = |keys: &KeySet| !keys.candidates(id, algorithm).is_empty();
        if has_key(&keys) {
            return Ok(keys);
        }
        if let Some(search) = self.shared.search() {
            wait(search).await;
        }
        let keys = self.shared.current(Instant::now()).ok_or(MissingKey::NoKeys)?;
        if has_key(&keys) { Ok(keys) } else { Err(MissingKey::Unknown) }
    }

    /// The metadata of the issuer. It stays known while the issuer is down.
    pub(super) async fn metadata(&self) -> Option<Arc<IssuerMetadata>> {
        let known = || self.shared.state.lock().metadata.clone();
        if let Some(known) = known() {
            return Some(known);
        }
        self.load().await;
        known()
    }

    /// Fetches the keys again at the next use, because the configuration was read again.
    pub(super) fn renew_soon(&self) {
        let mut state = self.shared.state.lock();
        let now = Instant::now();
        if let Some(current) = &mut state.current {
            current.renew_at = now;
        }
        (state.retry_at, state.searched_at, state.is_metadata_old) = (None, None, true);
    }

    /// The keys. Without any, the caller waits for a fetch.
    async fn load(&self) -> Option<Arc<KeySet>> {
        let first = {
            let mut state = self.shared.state.lock();
            let now = Instant::now();
            let keys = state.usable(now);
            let is_due = match &state.current {
                Some(current) if keys.is_some() => now >= current.renew_at,
                _ => true,
            };
            let may_fetch = is_due && state.retry_at.is_none_or(|at| now >= at);
            let running = state.running();
            let running = match running {
                None if may_fetch => Some(self.shared.start(&mut state)),
                running => running,
            };
            match keys {
                Some(keys) => return Some(keys),
                None => running,
            }
        };
        if let Some(running) = first {
            wait(running).await;
        }
        self.shared.current(Instant::now())
    }
}

async fn wait(mut running: watch::Receiver<()>) {
    // The sender is dropped when the fetch has ended.
    let _ = timeout(MAX_WAIT, async { while running.changed().await.is_ok() {} }).await;
}

impl KeyState {
    fn usable(&self, now: Instant) -> Option<Arc<KeySet>> {
        let current = self.current.as_ref()?;
        (now.duration_since(current.fetched_at) < STALE).then(|| Arc::clone(&current.keys))
    }

    fn set_metadata(&mut self, metadata: &Arc<IssuerMetadata>) {
        (self.metadata, self.is_metadata_old) = (Some(Arc::clone(metadata)), false);
    }

    /// The fetch that runs.
    fn running(&self) -> Option<watch::Receiver<()>> {
        self.running.clone().filter(|running| running.has_changed().is_ok())
    }
}

impl Shared {
    fn current(&self, now: Instant) -> Option<Arc<KeySet>> {
        self.state.lock().usable(now)
    }

    /// A fetch for a key that is not known; `None` if there was one in the last minute.
    fn search(self: &Arc<Self>) -> Option<watch::Receiver<()>> {
        let mut state = self.state.lock();
        let now = Instant::now();
        let was_recent =
            state.searched_at.is_some_and(|at| now.duration_since(at) < UNKNOWN_KEY_PERIOD);
        match state.running() {
            Some(running) => Some(running),
            None if was_recent => None,
            None => {
                state.searched_at = Some(now);
                Some(self.start(&mut state))
            }
        }
    }

    /// Starts a fetch. It goes on if the caller disconnects: others wait for it.
    fn start(self: &Arc<Self>, state: &mut KeyState) -> watch::Receiver<()> {
        let (ended, running) = watch::channel(());
        state.running = Some(running.clone());
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let fetched = timeout(FETCH_TIMEOUT, shared.fetch()).await.unwrap_or_else(|_| {
                let reason =
                    format!("the documents took longer than {} s", FETCH_TIMEOUT.as_secs());
                Err(OAuthError::Unreachable { url: shared.issuer.clone(), reason })
            });
            shared.finish(fetched);
            drop(ended);
        });
        running
    }

    async fn fetch(&self) -> Result<FetchedKeys, OAuthError> {
        match &self.source {
            KeySource::File(path) => {
                let path = path.clone();
                let read = tokio::task::spawn_blocking(move || read_file(&path)).await;
                read.unwrap_or_else(|_| Err(file_error(Path::new(""), "it cannot be read")))
            }
            KeySource::Url(url) => {
                let reach = configured_reach(url, self.allows_private);
                fetch_keys(&self.exchange, url, reach).await
            }
            KeySource::Discovery => self.discover().await,
        }
    }

    async fn discover(&self) -> Result<FetchedKeys, OAuthError> {
        let known = {
            let state = self.state.lock();
            state.metadata.clone().filter(|_| !state.is_metadata_old)
        };
        let metadata = match known {
            Some(metadata) => metadata,
            None => {
                let (issuer, private) = (&self.issuer, self.allows_private);
                let metadata = Arc::new(fetch_metadata(&self.exchange, issuer, private).await?);
                self.state.lock().set_metadata(&metadata);
                metadata
            }
        };
        let lacks = || OAuthError::Unsupported {
            issuer: self.issuer.clone(),
            feature: "key sets: its metadata has no `jwks_uri`",
        };
        let url = metadata.keys.as_ref().ok_or_else(lacks)?;
        let issuer = WebUrl::parse(&self.issuer)
            .map_err(|error| OAuthError::Address { member: "issuer", error })?;
        fetch_keys(&self.exchange, url, named_reach(url, &issuer, self.allows_private)).await
    }

    fn finish(&self, fetched: Result<FetchedKeys, OAuthError>) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.running = None;
        match fetched {
            Ok(fetched) => self.replace(&mut state, fetched, now),
            Err(error) => self.fail(&mut state, &error, now),
        }
    }

    fn replace(&self, state: &mut KeyState, fetched: FetchedKeys, now: Instant) {
        let age = fetched.max_age.map_or(DEFAULT_AGE, Duration::from_secs).clamp(MIN_AGE, MAX_AGE);
        let is_new = state.current.as_ref().is_none_or(|known| *known.keys != fetched.keys);
        if is_new && fetched.keys.repeated_ids() > 0 {
            let (issuer, count) = (&*self.label, fetched.keys.repeated_ids());
            tracing::warn!(issuer, count, "keys of an issuer have the same id and are not used");
        }
        let keys = match &state.current {
            Some(known) if !is_new => Arc::clone(&known.keys),
            _ => Arc::new(fetched.keys),
        };
        state.current = Some(Current { keys, fetched_at: now, renew_at: now + age * 4 / 5 });
        (state.failures, state.retry_at, state.warned_at) = (0, None, None);
        if is_new {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    fn fail(&self, state: &mut KeyState, error: &OAuthError, now: Instant) {
        let has_keys = state.usable(now).is_some();
        let most = if has_keys { MAX_RETRY } else { MAX_RETRY_WITHOUT_KEYS };
        let wait = Duration::from_secs(1 << state.failures.min(6)).min(most);
        state.failures = state.failures.saturating_add(1);
        state.retry_at = Some(now + wait);
        state.is_metadata_old = true;
        if state.warned_at.is_none_or(|at| now.duration_since(at) >= WARNING_PERIOD) {
            state.warned_at = Some(now);
            let (issuer, reason) = (&*self.label, error.to_string());
            tracing::warn!(issuer, reason, has_keys, "the keys of an issuer cannot be fetched");
        }
    }
}

fn read_file(path: &Path) -> Result<FetchedKeys, OAuthError> {
    let read = || {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path)?;
        file.take(MAX_DOCUMENT_BYTES as u64 + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    let bytes = read().map_err(|error| file_error(path, &error.to_string()))?;
    let keys = KeySet::parse(&bytes).map_err(|error| file_error(path, &error.to_string()))?;
    Ok(FetchedKeys { keys, max_age: None })
}

fn file_error(path: &Path, reason: &str) -> OAuthError {
    OAuthError::Document { url: path.display().to_string(), reason: reason.to_owned() }
}
