//! Who callers are at the site: their own header is shown there, and the answer is remembered for a moment.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::ToolError;
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::Instant;

use super::proof::Proof;
use super::site::{Asked, Site};
use super::trouble::Trouble;

/// How long somebody who was let in need not be looked up again; a password that is taken back works that long.
const KNOWN: Duration = Duration::from_secs(10);
/// How long somebody who was refused is refused without being looked up again.
const REFUSED: Duration = Duration::from_secs(5);
/// How long the calls of somebody who was let in may take to begin.
const ADMITTED: Duration = Duration::from_secs(900);
/// How many are remembered.
const MOST: usize = 1024;
/// How many are looked up at the same time.
const AT_ONCE: usize = 16;

/// Somebody whom the site knows and who has the capability that is asked for.
#[derive(Debug)]
pub(super) struct Visitor {
    /// The id of the user at the site.
    pub(super) id: u64,
    /// Who it is for sessions and states.
    pub(super) principal: Arc<str>,
    /// What is shown to the site.
    pub(super) proof: Proof,
    /// Whether the platform sees who is logged in, once that was asked.
    pub(super) is_early: OnceCell<bool>,
}

/// What the site says of somebody.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// May come in.
    Welcome(Arc<Visitor>),
    /// Is not known.
    Unknown,
    /// Is known, and lacks the capability.
    Forbidden,
}

/// What came of asking the site, and when; empty while it is asked.
type Lookup = OnceCell<(Instant, Verdict)>;

/// Who was let in last under a name, and when.
type Admitted = (Instant, Arc<Visitor>);

/// What is known of callers.
pub(super) struct Visitors {
    /// By what they showed.
    shown: Mutex<HashMap<Vec<u8>, Arc<Lookup>>>,
    /// Whose calls may be on their way, by their names for sessions and states.
    admitted: Arc<Mutex<HashMap<Arc<str>, Admitted>>>,
    /// What those showed who were let in, and when: wrong passwords from the same address do not shut them out.
    welcomed: Mutex<HashMap<Vec<u8>, Instant>>,
    at_once: Semaphore,
}

impl Default for Visitors {
    fn default() -> Self {
        Self::after(Arc::default())
    }
}

impl Visitors {
    fn after(admitted: Arc<Mutex<HashMap<Arc<str>, Admitted>>>) -> Self {
        let (shown, welcomed) = Default::default();
        Self { shown, admitted, welcomed, at_once: Semaphore::new(AT_ONCE) }
    }

    /// Nothing is known of anybody, but whoever was let in already may still begin a call.
    pub(super) fn successor(&self) -> Self {
        Self::after(Arc::clone(&self.admitted))
    }

    /// Somebody who was let in a moment ago, by the name for sessions and states.
    pub(super) fn of(&self, principal: &str) -> Option<Arc<Visitor>> {
        lock(&self.admitted).get(principal).map(|(_, visitor)| Arc::clone(visitor))
    }

    fn admit(&self, visitor: &Arc<Visitor>) {
        let now = Instant::now();
        let mut admitted = lock(&self.admitted);
        admitted.retain(|_, (since, _)| since.elapsed() < ADMITTED);
        make_room(&mut admitted, |(since, _)| Some(*since));
        admitted.insert(Arc::clone(&visitor.principal), (now, Arc::clone(visitor)));
        drop(admitted);
        let mut welcomed = lock(&self.welcomed);
        welcomed.retain(|_, since| since.elapsed() < ADMITTED);
        make_room(&mut welcomed, |since| Some(*since));
        welcomed.insert(visitor.proof.header().as_bytes().to_vec(), now);
    }

    /// Whether whoever shows this guesses nothing: the site said a moment ago what it says of them, or let them in before.
    pub(super) fn knows(&self, proof: &Proof) -> bool {
        let key = proof.header().as_bytes();
        let is_answered = |cell: &Arc<Lookup>| cell.get().is_some() && is_fresh(cell);
        lock(&self.shown).get(key).is_some_and(is_answered)
            || lock(&self.welcomed).get(key).is_some_and(|since| since.elapsed() < ADMITTED)
    }

    /// Has somebody looked up again the next time, as one who was never seen before.
    pub(super) fn forget(&self, visitor: &Visitor) {
        let key = visitor.proof.header().as_bytes();
        lock(&self.shown).remove(key);
        lock(&self.welcomed).remove(key);
    }

    fn cell(&self, proof: &Proof) -> Arc<Lookup> {
        let mut shown = lock(&self.shown);
        let key = proof.header().as_bytes();
        if let Some(cell) = shown.get(key).filter(|cell| is_fresh(cell)) {
            return Arc::clone(cell);
        }
        shown.retain(|_, cell| is_fresh(cell));
        make_room(&mut shown, |cell| cell.get().map(|(since, _)| *since));
        let cell = Arc::default();
        shown.insert(key.to_vec(), Arc::clone(&cell));
        cell
    }
}

/// Takes the oldest out of what is full.
fn make_room<K: Clone + Eq + Hash, V>(
    map: &mut HashMap<K, V>,
    since: impl Fn(&V) -> Option<Instant>,
) {
    if map.len() >= MOST {
        let oldest = map.iter().min_by_key(|(_, value)| since(value)).map(|(key, _)| key.clone());
        oldest.and_then(|key| map.remove(&key));
    }
}

/// Whether what is known still holds; what is being looked up does.
fn is_fresh(cell: &Lookup) -> bool {
    cell.get().is_none_or(|(since, verdict)| {
        let kept = if matches!(verdict, Verdict::Welcome(_)) { KNOWN } else { REFUSED };
        since.elapsed() < kept
    })
}

impl Site {
    /// Says who shows this. Callers that show the same at the same time share one look-up.
    pub(super) async fn identify(&self, proof: &Proof) -> Result<Verdict, Trouble> {
        let cell = self.shared.visitors.cell(proof);
        let look_up = || async {
            // Nobody closes it.
            let _place = self.shared.visitors.at_once.acquire().await;
            self.look_up(proof).await.map(|verdict| (Instant::now(), verdict))
        };
        let (_, verdict) = cell.get_or_try_init(look_up).await?;
        if let Verdict::Welcome(visitor) = verdict {
            self.shared.visitors.admit(visitor);
        }
        Ok(verdict.clone())
    }

    /// Who calls: somebody who came in by the door, or the account of the configuration.
    pub(super) async fn visitor(&self, principal: &str) -> Result<Arc<Visitor>, ToolError> {
        if let Some(visitor) = self.shared.visitors.of(principal) {
            return Ok(visitor);
        }
        let Some((user, password)) = &self.shared.settings.account else {
            return Err(ToolError::failed(
                "nobody is signed in at the site: call over HTTP with an Application Password, or configure `user` \
                 and `password_file` in `[wordpress]`",
            ));
        };
        let proof = Proof::new(user, &password.get()?);
        let proof =
            proof.ok_or_else(|| ToolError::failed("the configured account cannot be sent"))?;
        match self.identify(&proof).await {
            Ok(Verdict::Welcome(visitor)) => Ok(visitor),
            Ok(Verdict::Unknown) => {
                Err(ToolError::failed("the site does not know the configured account"))
            }
            Ok(Verdict::Forbidden) => Err(ToolError::failed("Insufficient permissions")),
            Err(trouble) => Err(ToolError::failed(trouble.told(false))),
        }
    }

    /// A wrong password is an anonymous visitor on public routes, so it is asked who "me" is.
    async fn look_up(&self, proof: &Proof) -> Result<Verdict, Trouble> {
        let me = Asked::get("/wp/v2/users/me").with("context", "edit");
        let me = me.with("_fields", "id,capabilities");
        let me = match self.ask(Some(proof), &me).await {
            Ok(answered) => answered.body,
            Err(Trouble::Refused(refusal)) if refusal.status == 401 => return Ok(Verdict::Unknown),
            Err(Trouble::Refused(refusal)) if refusal.status == 403 => {
                return Ok(Verdict::Forbidden);
            }
            Err(trouble) => return Err(trouble),
        };
        let Some(id) = me["id"].as_u64().filter(|id| *id > 0) else { return Ok(Verdict::Unknown) };
        let capability = &self.shared.settings.capability;
        let has = match capability.as_str() {
            "" => true,
            name if me["capabilities"][name] == Value::Bool(true) => true,
            // Super administrators and plugins for roles: only the site itself can say.
            "manage_options" => self.may_manage(proof).await?,
            _ => false,
        };
        if !has {
            return Ok(Verdict::Forbidden);
        }
        let principal = format!("wordpress:{id}").into();
        let (proof, is_early) = (proof.clone(), OnceCell::new());
        Ok(Verdict::Welcome(Arc::new(Visitor { id, principal, proof, is_early })))
    }

    async fn may_manage(&self, proof: &Proof) -> Result<bool, Trouble> {
        let settings = Asked::get("/wp/v2/settings").with("_fields", "title");
        match self.ask(Some(proof), &settings).await {
            Ok(_) => Ok(true),
            Err(Trouble::Refused(_)) => Ok(false),
            Err(trouble) => Err(trouble),
        }
    }
}

impl fmt::Debug for Visitors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Visitors").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::secret::Secret;

    fn visitor(password: &str) -> Arc<Visitor> {
        let proof = Proof::new("admin", &Secret(password.to_owned())).unwrap();
        let (principal, is_early) = ("wordpress:1".into(), OnceCell::new());
        Arc::new(Visitor { id: 1, principal, proof, is_early })
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_site_said_is_asked_again_after_a_moment() {
        let (visitors, somebody) = (Visitors::default(), visitor("word"));
        let welcome = (Instant::now(), Verdict::Welcome(Arc::clone(&somebody)));
        let cell = || visitors.cell(&somebody.proof);
        cell().set(welcome).unwrap();
        tokio::time::advance(KNOWN - Duration::from_millis(1)).await;
        assert!(cell().get().is_some());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(cell().get().is_none());
        cell().set((Instant::now(), Verdict::Unknown)).unwrap();
        assert!(visitors.knows(&somebody.proof));
        tokio::time::advance(REFUSED).await;
        assert!(!visitors.knows(&somebody.proof) && cell().get().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_let_in_guesses_nothing_until_the_site_refuses() {
        let (visitors, somebody) = (Visitors::default(), visitor("word"));
        assert!(!visitors.knows(&somebody.proof));
        visitors.admit(&somebody);
        tokio::time::advance(KNOWN * 2).await;
        assert!(visitors.knows(&somebody.proof) && !visitors.knows(&visitor("other").proof));
        visitors.forget(&somebody);
        assert!(!visitors.knows(&somebody.proof));
    }
}
