//! Processes that share a state, and what one of them asks of another.
//!
//! A client may come back to another process than the one that has its call or its stream. The one that was asked
//! then sends an errand to the one that has it, and passes on what that one says. All of it goes through the
//! [`State`]: an errand is a value that its taker removes, so that it is taken once; what is said about it is a log;
//! messages only tell that there is something to look at, so nothing is lost with one of them.
//!
//! Nothing here costs anything before there is something to [keep](Peers::keep) for others: only then does a process
//! say that it is there, and listen.

mod errand;
mod presence;
mod replies;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};

pub use errand::{Desk, Errand, Sender};
pub use replies::Replies;

use crate::state::{State, StateError};
use crate::task::random_id;

/// How often a process says that it is there.
pub(crate) const BEAT: Duration = Duration::from_secs(2);

/// How long it is believed to be there after it last said so. All of them go by the clock of the state.
pub(crate) const ALIVE: Duration = Duration::from_secs(8);

/// How long a process that is there may take to take an errand.
const TAKEN_WITHIN: Duration = Duration::from_secs(15);

/// The longest that somebody waits for an errand, and that what is said about it is kept.
pub(crate) const LONGEST: Duration = Duration::from_secs(3600);

/// Errands of others that a process is busy with at the same time; the rest waits.
const MOST_ERRANDS: usize = 1024;

/// One of several processes that share a state; clones are the same one.
#[derive(Clone)]
pub struct Peers {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    state: State,
    name: String,
    kept: Mutex<Kept>,
    /// Whether others can find this process.
    present: watch::Sender<bool>,
    slots: Arc<Semaphore>,
}

/// What this process keeps for others.
#[derive(Default)]
struct Kept {
    takers: HashMap<String, Taker>,
    /// Whether somebody says that this process is there.
    runs: bool,
}

type Taker = Arc<dyn Fn(Errand) + Send + Sync>;

/// Why an errand came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Unreached {
    /// The process is gone, or went while the errand was run.
    Gone,
    /// The process has no such thing any more.
    Unknown,
    /// The process is there and has not taken it.
    Busy,
    /// The state that they share failed, or the errand is too long for it.
    State(StateError),
}

impl From<StateError> for Unreached {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl fmt::Display for Unreached {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("the process that had it is gone"),
            Self::Unknown => formatter.write_str("the process that had it has it no more"),
            Self::Busy => formatter.write_str("the process that has it is too busy; try again"),
            Self::State(error) => write!(formatter, "it cannot be handed on: {error}"),
        }
    }
}

impl std::error::Error for Unreached {}

/// Something that is kept for others until this is dropped.
#[must_use = "others find it for as long as this lives"]
pub struct Keeping {
    shared: Arc<Shared>,
    target: String,
}

impl Peers {
    /// This process, as one of those that share the state. Its name is a new one, so that a process that was started
    /// again is not taken for the one before; `None` when the system has no randomness for it.
    #[must_use]
    pub fn new(state: State) -> Option<Self> {
        let name = random_id().ok()?;
        let (kept, present) = (Mutex::default(), watch::Sender::new(false));
        let slots = Arc::new(Semaphore::new(MOST_ERRANDS));
        Some(Self { shared: Arc::new(Shared { state, name, kept, present, slots }) })
    }

    /// What others know this process by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What they share.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.shared.state
    }

    /// Has errands to `target` come to `take`, which must not wait, for as long as what is given back lives. Returns
    /// once others can find it.
    pub async fn keep(
        &self,
        target: &str,
        take: impl Fn(Errand) + Send + Sync + 'static,
    ) -> Keeping {
        let keeping = Keeping { shared: Arc::clone(&self.shared), target: target.to_owned() };
        self.shared.kept().takers.insert(target.to_owned(), Arc::new(take));
        presence::start(&self.shared);
        let mut present = self.shared.present.subscribe();
        // A state that fails is told of in the log; who comes back to this process finds everything all the same.
        _ = tokio::time::timeout(ALIVE, present.wait_for(|present| *present)).await;
        keeping
    }

    /// Sends an errand about a target to a process that has it; what it says to it is read from what is given back.
    ///
    /// # Errors
    /// When the process is not there, the errand is longer than a value of the state, or the state fails.
    pub async fn send(&self, to: &str, target: &str, errand: Bytes) -> Result<Replies, Unreached> {
        if !self.shared.is_alive(to).await? {
            return Err(Unreached::Gone);
        }
        Replies::send(Arc::clone(&self.shared), to, target, errand).await
    }

    /// Tells the others that this process is gone, so that nobody waits until they notice.
    pub async fn leave(&self) {
        self.shared.kept().takers.clear();
        // Who cannot be told notices a little later.
        _ = self.shared.state.remove(&presence_path(&self.shared.name)).await;
    }
}

impl Shared {
    async fn is_alive(&self, name: &str) -> Result<bool, StateError> {
        let is_name = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(is_name && self.state.get(&presence_path(name)).await?.is_some())
    }

    fn taker(&self, target: &str) -> Option<Taker> {
        self.kept().takers.get(target).cloned()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        let taker = self.shared.kept().takers.remove(&self.target);
        // Outside of the lock: it may hold on to anything.
        drop(taker);
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Peers").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Where a process says that it is there, and the topic on which it is told of errands.
fn presence_path(name: &str) -> String {
    format!("peer/{name}")
}

/// The errand itself, until it is taken.
fn errand_path(id: &str) -> String {
    format!("errand/{id}")
}

/// There for as long as somebody waits for the errand; also the topic on which its end is told.
fn waiting_path(id: &str) -> String {
    format!("errand/{id}/waiting")
}

/// The log of what is said about an errand, and the topic on which that is told.
fn replies_path(id: &str) -> String {
    format!("errand/{id}/replies")
}
