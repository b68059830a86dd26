//! Stores the lists of an upstream: the shared ones, and those of callers that have their own session.
//!
//! A session list that equals the shared one is only recorded, not stored. Definitions that equal shared ones are
//! shared by reference.

use creole::internal::sync::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole::internal::registry::SessionList;
use creole::proto::model::{CacheHints, Definition, ListKind};
use tokio::time::Instant;

use crate::upstream::connections::session_key::SessionKey;
use crate::upstream::lists::list_age::{MIN_FETCH_INTERVAL, digest};
use crate::upstream::lists::list_fetch::{item_key, newest_json};

/// The maximum number of sessions of one upstream whose lists are stored.
const MAX_SESSIONS: usize = 256;

/// The maximum number of definitions in session lists that are not shared ones.
const MAX_DEFINITIONS: usize = 20_000;

/// How long a session list stays in use after a failed fetch.
const RETRY_PAUSE: Duration = Duration::from_secs(10);

/// The fetched lists of one upstream.
#[derive(Default)]
pub(crate) struct ListStore(Mutex<ListStoreInner>);

#[derive(Default)]
struct ListStoreInner {
    shared: BTreeMap<ListKind, SharedList>,
    sessions: HashMap<SessionKey, StoredSession>,
    /// Counts uses of sessions, to find the least recently used one.
    uses: u64,
}

#[derive(Default)]
struct SharedList {
    items: Vec<Arc<Definition>>,
    digest: u64,
    /// Counts how often the list was published. Session lists are named again after each publication.
    published: u64,
}

#[derive(Default)]
struct StoredSession {
    lists: BTreeMap<ListKind, StoredList>,
    last_used: u64,
}

/// A list of one session.
struct StoredList {
    /// The definitions of the upstream and the list that callers see. `None` if both equal the shared list.
    items: Option<(Vec<Arc<Definition>>, SessionList)>,
    /// How many of its definitions are not shared.
    unshared: usize,
    digest: u64,
    /// The publication count of the shared list at that time.
    published: u64,
    fetched_at: Instant,
    ttl: Duration,
    /// Whether the upstream announces changes of it.
    is_announced: bool,
    is_stale: bool,
    /// When it is fetched again after a failure.
    retry_at: Option<Instant>,
}

/// A fetched session list.
pub(crate) struct FetchedSessionList {
    pub(crate) items: Vec<Arc<Definition>>,
    pub(crate) cache: CacheHints,
    /// Whether the upstream announces changes of it.
    pub(crate) is_announced: bool,
}

impl ListStore {
    /// Stores the shared list.
    pub(crate) fn set_shared(&self, kind: ListKind, items: Vec<Arc<Definition>>) {
        let mut inner = self.lock();
        let shared = inner.shared.entry(kind).or_default();
        shared.digest = digest(&items);
        shared.items = items;
        shared.published += 1;
    }

    /// The shared list.
    pub(crate) fn shared(&self, kind: ListKind) -> Vec<Arc<Definition>> {
        self.lock().shared.get(&kind).map(|shared| shared.items.clone()).unwrap_or_default()
    }

    /// The number of items in the shared list.
    pub(crate) fn count(&self, kind: ListKind) -> usize {
        self.lock().shared.get(&kind).map_or(0, |shared| shared.items.len())
    }

    /// Whether the shared list was fetched at least once.
    pub(crate) fn was_fetched(&self, kind: ListKind) -> bool {
        self.lock().shared.contains_key(&kind)
    }

    /// Whether the list of a session is current and need not be fetched.
    pub(crate) fn is_current(&self, kind: ListKind, key: &SessionKey) -> bool {
        let inner = self.lock();
        let Some(own) = inner.stored_list(kind, key) else { return false };
        if let Some(retry_at) = own.retry_at {
            return Instant::now() < retry_at;
        }
        let age = || own.fetched_at.elapsed();
        let is_young = own.is_announced || age() < own.ttl.max(MIN_FETCH_INTERVAL);
        let is_valid = match (inner.shared.get(&kind), &own.items) {
            (Some(shared), None) => shared.digest == own.digest,
            (Some(shared), Some(_)) => shared.published == own.published,
            (None, items) => items.is_some(),
        };
        !own.is_stale && is_young && is_valid
    }

    /// Stores the list of a session. `show` converts it to the list that callers see.
    pub(crate) fn set_session_list(
        &self,
        kind: ListKind,
        key: &SessionKey,
        fetched: FetchedSessionList,
        show: impl FnOnce(&[Arc<Definition>]) -> SessionList,
    ) {
        let FetchedSessionList { mut items, cache, is_announced } = fetched;
        let digest = digest(&items);
        let (is_shared, published, unshared) = match self.lock().shared.get(&kind) {
            None => (false, 0, items.len()),
            Some(shared) => {
                let unshared = share_definitions(&mut items, &shared.items, kind);
                (shared.digest == digest, shared.published, unshared)
            }
        };
        // Outside of the lock: `show` calls layers.
        let shown = (!is_shared).then(|| show(&items));
        let own = StoredList {
            items: shown.map(|shown| (items, shown)),
            unshared,
            digest,
            published,
            fetched_at: Instant::now(),
            ttl: Duration::from_millis(cache.ttl_ms),
            is_announced,
            is_stale: false,
            retry_at: None,
        };
        let mut inner = self.lock();
        inner.sessions.entry(key.clone()).or_default().lists.insert(kind, own);
        inner.touch(key);
        inner.evict();
    }

    /// Records that the list of a session could not be fetched. The previous list stays in use for a while.
    pub(crate) fn set_failed(&self, kind: ListKind, key: &SessionKey) {
        let mut inner = self.lock();
        let retry_at = Some(Instant::now() + RETRY_PAUSE);
        let lists = &mut inner.sessions.entry(key.clone()).or_default().lists;
        let own = lists.entry(kind).or_insert_with(|| StoredList {
            items: None,
            unshared: 0,
            digest: 0,
            published: 0,
            fetched_at: Instant::now(),
            ttl: Duration::ZERO,
            is_announced: false,
            is_stale: true,
            retry_at: None,
        });
        own.retry_at = retry_at;
        inner.touch(key);
        inner.evict();
    }

    /// Records that a list of a session changed.
    pub(crate) fn set_stale(&self, kind: ListKind, key: &SessionKey) {
        let mut inner = self.lock();
        let Some(session) = inner.sessions.get_mut(key) else { return };
        let is_resource = |kind| matches!(kind, ListKind::Resources | ListKind::Templates);
        for (other, own) in &mut session.lists {
            if *other == kind || is_resource(kind) && is_resource(*other) {
                own.is_stale = true;
                own.retry_at = None;
            }
        }
    }

    /// Records that a session ended: the next session of its callers may have other lists. Returns the lists that
    /// differed from the shared ones.
    pub(crate) fn end_session(&self, key: &SessionKey) -> Vec<ListKind> {
        let mut inner = self.lock();
        let lists = inner.sessions.get_mut(key).map(|session| session.lists.iter_mut());
        let mut own = Vec::new();
        for (kind, list) in lists.into_iter().flatten() {
            list.is_stale = true;
            own.extend(list.items.is_some().then_some(*kind));
        }
        own
    }

    /// Forgets the lists of all sessions.
    pub(crate) fn forget_all(&self) {
        self.lock().sessions.clear();
    }

    /// Whether a list of the session is stored, even if it is stale.
    pub(crate) fn has_session_list(&self, kind: ListKind, key: &SessionKey) -> bool {
        self.lock().stored_list(kind, key).is_some_and(|own| own.items.is_some())
    }

    /// The list of a session as its callers see it. `None` if they see the shared one.
    pub(crate) fn session_list(&self, kind: ListKind, key: &SessionKey) -> Option<SessionList> {
        let mut inner = self.lock();
        inner.touch(key);
        let own = inner.stored_list(kind, key)?;
        own.items.as_ref().map(|(_, shown)| Arc::clone(shown))
    }

    /// All definitions of a list: the shared ones, and after them those of sessions.
    pub(crate) fn all_definitions(&self, kind: ListKind) -> Vec<Arc<Definition>> {
        let inner = self.lock();
        let shared = inner.shared.get(&kind).map(|shared| &shared.items).into_iter().flatten();
        let own = inner.sessions.values().filter_map(|session| session.lists.get(&kind));
        let own = own.filter_map(|own| Some(&own.items.as_ref()?.0)).flatten();
        shared.chain(own).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, ListStoreInner> {
        self.0.lock()
    }
}

impl ListStoreInner {
    fn stored_list(&self, kind: ListKind, key: &SessionKey) -> Option<&StoredList> {
        self.sessions.get(key)?.lists.get(&kind)
    }

    fn touch(&mut self, key: &SessionKey) {
        self.uses += 1;
        if let Some(session) = self.sessions.get_mut(key) {
            session.last_used = self.uses;
        }
    }

    /// Evicts the least recently used sessions until the rest is within the limits.
    fn evict(&mut self) {
        loop {
            let lists = self.sessions.values().flat_map(|session| session.lists.values());
            let definitions: usize = lists.map(|own| own.unshared).sum();
            if self.sessions.len() <= MAX_SESSIONS && definitions <= MAX_DEFINITIONS {
                return;
            }
            let oldest = self.sessions.iter().min_by_key(|(_, session)| session.last_used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            self.sessions.remove(&oldest);
        }
    }
}

/// Replaces definitions by equal ones of the shared list. Returns the number of definitions that have no equal.
fn share_definitions(
    items: &mut [Arc<Definition>],
    shared: &[Arc<Definition>],
    kind: ListKind,
) -> usize {
    let known: HashMap<String, &Arc<Definition>> =
        shared.iter().map(|item| (item_key(kind, item), item)).collect();
    let mut unshared = 0;
    for item in items {
        match known.get(&item_key(kind, item)).filter(|same| newest_json(same) == newest_json(item))
        {
            Some(same) => *item = Arc::clone(same),
            None => unshared += 1,
        }
    }
    unshared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::connections::capabilities::DeclaredInputs;
    use crate::upstream::connections::session_key::SessionOwner;

    fn tool(name: &str, description: &str) -> Arc<Definition> {
        let text = format!(
            r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object"}}}}"#
        );
        Arc::new(Definition::from_upstream(ListKind::Tools, &text, None).unwrap())
    }

    fn key(principal: &str) -> SessionKey {
        let owner = SessionOwner::Principal(principal.into());
        let (era, declared) = (creole::proto::revision::Era::Handshake, DeclaredInputs::default());
        SessionKey { owner, era, inputs: declared, exclusive: false, lane: 0 }
    }

    fn fetched(items: Vec<Arc<Definition>>) -> FetchedSessionList {
        FetchedSessionList {
            items,
            cache: CacheHints { ttl_ms: 0, public: false },
            is_announced: false,
        }
    }

    fn names(lists: &ListStore, principal: &str) -> Option<Vec<String>> {
        let list = lists.session_list(ListKind::Tools, &key(principal))?;
        Some(list.iter().map(|item| item.name().to_owned()).collect())
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_list_is_current_until_it_is_old_or_changed() {
        let lists = ListStore::default();
        lists.set_shared(ListKind::Tools, vec![tool("echo", "")]);
        let (ann, bob) = (key("ann"), key("bob"));
        assert!(!lists.is_current(ListKind::Tools, &ann));
        let own = fetched(vec![tool("echo", ""), tool("own", "")]);
        lists.set_session_list(ListKind::Tools, &ann, own, |items| items.into());
        assert!(lists.is_current(ListKind::Tools, &ann));
        assert!(!lists.is_current(ListKind::Tools, &bob), "the list belongs to Ann's session");
        assert_eq!(names(&lists, "ann").unwrap(), ["echo", "own"]);
        assert_eq!(names(&lists, "bob"), None);
        lists.set_stale(ListKind::Tools, &ann);
        assert!(!lists.is_current(ListKind::Tools, &ann));
        let announced = FetchedSessionList { is_announced: true, ..fetched(vec![tool("own", "")]) };
        lists.set_session_list(ListKind::Tools, &ann, announced, |items| items.into());
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert!(lists.is_current(ListKind::Tools, &ann), "its changes are announced");
        lists.set_session_list(ListKind::Tools, &ann, fetched(vec![tool("own", "")]), |items| {
            items.into()
        });
        tokio::time::advance(MIN_FETCH_INTERVAL).await;
        assert!(!lists.is_current(ListKind::Tools, &ann), "no change notification would arrive");
        lists.set_failed(ListKind::Tools, &ann);
        assert!(lists.is_current(ListKind::Tools, &ann), "the fetch is paused");
        assert_eq!(names(&lists, "ann").unwrap(), ["own"], "the old list stays in use");
        tokio::time::advance(RETRY_PAUSE).await;
        assert!(!lists.is_current(ListKind::Tools, &ann));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_list_that_is_the_shared_one_is_not_stored_and_follows_it() {
        let lists = ListStore::default();
        let ann = key("ann");
        lists.set_shared(ListKind::Tools, vec![tool("echo", "")]);
        let same = FetchedSessionList { is_announced: true, ..fetched(vec![tool("echo", "")]) };
        lists.set_session_list(ListKind::Tools, &ann, same, |_| panic!("nothing is stored"));
        assert!(lists.is_current(ListKind::Tools, &ann) && names(&lists, "ann").is_none());
        lists.set_shared(ListKind::Tools, vec![tool("other", "")]);
        assert!(
            !lists.is_current(ListKind::Tools, &ann),
            "the session may still have the old list"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn memory_for_session_lists_is_bounded_and_shared_definitions_are_shared() {
        let lists = ListStore::default();
        let shared = tool("echo", "");
        lists.set_shared(ListKind::Tools, vec![Arc::clone(&shared)]);
        for number in 0..2 * MAX_SESSIONS {
            let own = fetched(vec![tool("echo", ""), tool("own", &number.to_string())]);
            lists.set_session_list(ListKind::Tools, &key(&number.to_string()), own, |items| {
                assert!(Arc::ptr_eq(&items[0], &shared));
                items.into()
            });
        }
        assert_eq!(lists.lock().sessions.len(), MAX_SESSIONS);
        assert!(names(&lists, "0").is_none(), "the oldest entry is evicted");
        assert!(names(&lists, &(2 * MAX_SESSIONS - 1).to_string()).is_some());
        let many = |text: &str| (0..MAX_DEFINITIONS).map(|n| tool(&n.to_string(), text)).collect();
        lists.set_session_list(ListKind::Tools, &key("big"), fetched(many("a")), |items| {
            items.into()
        });
        lists.set_session_list(ListKind::Tools, &key("bigger"), fetched(many("b")), |items| {
            items.into()
        });
        assert!(names(&lists, "big").is_none() && names(&lists, "bigger").is_some());
    }
}
