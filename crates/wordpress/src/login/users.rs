//! The callers' users at the site. A caller's credentials are checked there, and the result is cached briefly.

use creole::internal::sync::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use creole::{Principal, ToolError};
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use crate::login::basic_credentials::BasicCredentials;
use crate::site::site_error::SiteError;
use crate::site::{Site, SiteRequest};

/// The time for which a successful lookup is cached. A revoked password works that long.
const LOOKUP_TTL: Duration = Duration::from_secs(10);
/// The time for which a rejection is cached.
const REJECTION_TTL: Duration = Duration::from_secs(5);
/// The time within which an admitted user's calls must begin.
const ADMISSION_TTL: Duration = Duration::from_secs(900);
/// Maximum number of cached users.
const MAX_ENTRIES: usize = 1024;
/// Maximum number of concurrent lookups.
const MAX_CONCURRENT_LOOKUPS: usize = 16;

/// A user of the site who has the required capability.
#[derive(Debug)]
pub(crate) struct SiteUser {
    /// The id of the user at the site.
    pub(crate) id: u64,
    /// The principal for sessions and states.
    pub(crate) principal: Principal,
    /// The credentials for the site.
    pub(crate) credentials: BasicCredentials,
    /// Whether the platform sees the user as logged in, once this is known.
    pub(crate) is_login_visible: OnceCell<bool>,
}

/// The result of looking up a user.
#[derive(Clone, Debug)]
pub(crate) enum UserLookup {
    /// The user is admitted.
    Admitted(Arc<SiteUser>),
    /// The user is unknown.
    Unknown,
    /// The user is known, but lacks the capability.
    Forbidden,
}

/// The result of a lookup and its time; empty during the lookup.
type LookupCell = OnceCell<(Instant, UserLookup)>;

/// The last admitted user of a principal, and the time.
type AdmittedUser = (Instant, Arc<SiteUser>);

/// The cached users.
pub(crate) struct UserCache {
    /// By credentials.
    lookups: Mutex<HashMap<Vec<u8>, Arc<LookupCell>>>,
    /// Users whose calls may be in transit, by principal.
    admitted: Arc<Mutex<HashMap<Arc<str>, AdmittedUser>>>,
    /// The credentials of admitted users, and the time: wrong passwords from the same address do not lock them out.
    recent_logins: Mutex<HashMap<Vec<u8>, Instant>>,
    lookup_permits: Semaphore,
}

impl Default for UserCache {
    fn default() -> Self {
        Self::with_admitted(Arc::default())
    }
}

impl UserCache {
    fn with_admitted(admitted: Arc<Mutex<HashMap<Arc<str>, AdmittedUser>>>) -> Self {
        let (shown, welcomed) = Default::default();
        Self {
            lookups: shown,
            admitted,
            recent_logins: welcomed,
            lookup_permits: Semaphore::new(MAX_CONCURRENT_LOOKUPS),
        }
    }

    /// An empty cache in which users that were admitted before may still begin a call.
    pub(crate) fn for_new_settings(&self) -> Self {
        Self::with_admitted(Arc::clone(&self.admitted))
    }

    /// A recently admitted user, by principal.
    pub(crate) fn find_admitted(&self, principal: &str) -> Option<Arc<SiteUser>> {
        self.admitted.lock().get(principal).map(|(_, user)| Arc::clone(user))
    }

    fn admit(&self, user: &Arc<SiteUser>) {
        let now = Instant::now();
        let mut admitted = self.admitted.lock();
        admitted.retain(|_, (since, _)| since.elapsed() < ADMISSION_TTL);
        evict_oldest(&mut admitted, |(since, _)| Some(*since));
        admitted.insert(Arc::clone(user.principal.identity()), (now, Arc::clone(user)));
        drop(admitted);
        let mut welcomed = self.recent_logins.lock();
        welcomed.retain(|_, since| since.elapsed() < ADMISSION_TTL);
        evict_oldest(&mut welcomed, |since| Some(*since));
        welcomed.insert(user.credentials.header().as_bytes().to_vec(), now);
    }

    /// Whether these credentials are not a guess: the site judged them recently, or admitted them before.
    pub(crate) fn has_recent_lookup(&self, proof: &BasicCredentials) -> bool {
        let key = proof.header().as_bytes();
        let is_answered = |cell: &Arc<LookupCell>| cell.get().is_some() && is_fresh(cell);
        self.lookups.lock().get(key).is_some_and(is_answered)
            || self
                .recent_logins
                .lock()
                .get(key)
                .is_some_and(|since| since.elapsed() < ADMISSION_TTL)
    }

    /// Forgets a user, so that the next request looks the user up again.
    pub(crate) fn forget(&self, user: &SiteUser) {
        let key = user.credentials.header().as_bytes();
        self.lookups.lock().remove(key);
        self.recent_logins.lock().remove(key);
    }

    fn cell(&self, proof: &BasicCredentials) -> Arc<LookupCell> {
        let mut shown = self.lookups.lock();
        let key = proof.header().as_bytes();
        if let Some(cell) = shown.get(key).filter(|cell| is_fresh(cell)) {
            return Arc::clone(cell);
        }
        shown.retain(|_, cell| is_fresh(cell));
        evict_oldest(&mut shown, |cell| cell.get().map(|(since, _)| *since));
        let cell = Arc::default();
        shown.insert(key.to_vec(), Arc::clone(&cell));
        cell
    }
}

/// Evicts the oldest entry of a full map.
fn evict_oldest<K: Clone + Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    since: impl Fn(&V) -> Option<Instant>,
) {
    if map.len() >= MAX_ENTRIES {
        let oldest = map.iter().min_by_key(|(_, value)| since(value)).map(|(key, _)| key.clone());
        oldest.and_then(|key| map.remove(&key));
    }
}

/// Whether a cached result is valid; a running lookup is.
fn is_fresh(cell: &LookupCell) -> bool {
    cell.get().is_none_or(|(since, lookup)| {
        let kept =
            if matches!(lookup, UserLookup::Admitted(_)) { LOOKUP_TTL } else { REJECTION_TTL };
        since.elapsed() < kept
    })
}

impl Site {
    /// Identifies a user. Concurrent calls with the same credentials share one lookup.
    pub(crate) async fn identify(&self, proof: &BasicCredentials) -> Result<UserLookup, SiteError> {
        let cell = self.inner.users.cell(proof);
        let look_up = || async {
            // The semaphore is never closed.
            let _permit = self.inner.users.lookup_permits.acquire().await;
            self.look_up(proof).await.map(|lookup| (Instant::now(), lookup))
        };
        let (_, lookup) = cell.get_or_try_init(look_up).await?;
        if let UserLookup::Admitted(user) = lookup {
            self.inner.users.admit(user);
        }
        Ok(lookup.clone())
    }

    /// The user of a call: an authenticated one, or the configured account.
    pub(crate) async fn user_for(&self, principal: &str) -> Result<Arc<SiteUser>, ToolError> {
        if let Some(site_user) = self.inner.users.find_admitted(principal) {
            return Ok(site_user);
        }
        let Some((user, password)) = &self.inner.settings.account else {
            return Err(ToolError::failed(
                "no user is authenticated at the site: call over HTTP with an Application Password, or configure `user` \
                 and `password_file` in `[wordpress]`",
            ));
        };
        let proof = BasicCredentials::new(user, &password.get()?);
        let proof = proof.ok_or_else(|| {
            ToolError::failed("the configured account contains characters that cannot be sent")
        })?;
        match self.identify(&proof).await {
            Ok(UserLookup::Admitted(site_user)) => Ok(site_user),
            Ok(UserLookup::Unknown) => {
                Err(ToolError::failed("the site rejects the configured account"))
            }
            Ok(UserLookup::Forbidden) => Err(ToolError::failed("Insufficient permissions")),
            Err(error) => Err(ToolError::failed(error.to_message(false))),
        }
    }

    /// With a wrong password, public routes respond as to an anonymous visitor, so the lookup requests "me".
    async fn look_up(&self, proof: &BasicCredentials) -> Result<UserLookup, SiteError> {
        let me = SiteRequest::get("/wp/v2/users/me").with_query("context", "edit");
        let me = me.with_query("_fields", "id,capabilities");
        let me = match self.request(Some(proof), &me).await {
            Ok(response) => response.body,
            Err(SiteError::Refused(refusal)) if refusal.status == 401 => {
                return Ok(UserLookup::Unknown);
            }
            Err(SiteError::Refused(refusal)) if refusal.status == 403 => {
                return Ok(UserLookup::Forbidden);
            }
            Err(error) => return Err(error),
        };
        let Some(id) = me["id"].as_u64().filter(|id| *id > 0) else {
            return Ok(UserLookup::Unknown);
        };
        let capability = &self.inner.settings.capability;
        let has = match capability.as_str() {
            "" => true,
            name if me["capabilities"][name] == Value::Bool(true) => true,
            // Only the site itself can determine super administrators and the effects of role plugins.
            "manage_options" => self.may_manage(proof).await?,
            _ => false,
        };
        if !has {
            return Ok(UserLookup::Forbidden);
        }
        let principal = Principal::new(&format!("wordpress:{id}"), &[]);
        let (proof, is_early) = (proof.clone(), OnceCell::new());
        Ok(UserLookup::Admitted(Arc::new(SiteUser {
            id,
            principal,
            credentials: proof,
            is_login_visible: is_early,
        })))
    }

    async fn may_manage(&self, proof: &BasicCredentials) -> Result<bool, SiteError> {
        let settings = SiteRequest::get("/wp/v2/settings").with_query("_fields", "title");
        match self.request(Some(proof), &settings).await {
            Ok(_) => Ok(true),
            Err(SiteError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl fmt::Debug for UserCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Visitors").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use creole_tools::recipe::secret::Secret;

    fn site_user(password: &str) -> Arc<SiteUser> {
        let proof = BasicCredentials::new("admin", &Secret(password.to_owned())).unwrap();
        let (principal, is_early) = ("wordpress:1".into(), OnceCell::new());
        Arc::new(SiteUser { id: 1, principal, credentials: proof, is_login_visible: is_early })
    }

    #[tokio::test(start_paused = true)]
    async fn a_verified_user_is_checked_again_after_some_seconds() {
        let (users, user) = (UserCache::default(), site_user("word"));
        let welcome = (Instant::now(), UserLookup::Admitted(Arc::clone(&user)));
        let cell = || users.cell(&user.credentials);
        cell().set(welcome).unwrap();
        tokio::time::advance(LOOKUP_TTL - Duration::from_millis(1)).await;
        assert!(cell().get().is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(cell().get().is_none());
        cell().set((Instant::now(), UserLookup::Unknown)).unwrap();
        assert!(users.has_recent_lookup(&user.credentials));
        tokio::time::advance(REJECTION_TTL).await;
        assert!(!users.has_recent_lookup(&user.credentials) && cell().get().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_verified_user_is_not_throttled_until_the_site_refuses() {
        let (users, user) = (UserCache::default(), site_user("word"));
        assert!(!users.has_recent_lookup(&user.credentials));
        users.admit(&user);
        tokio::time::advance(LOOKUP_TTL * 2).await;
        assert!(
            users.has_recent_lookup(&user.credentials)
                && !users.has_recent_lookup(&site_user("other").credentials)
        );
        users.forget(&user);
        assert!(!users.has_recent_lookup(&user.credentials));
    }
}
