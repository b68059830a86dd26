//! Processes that share a state, and what one of them asks of another.
//!
//! A client may come back to another process than the one that has its call or its stream. The one that was asked
//! then sends an errand to the one that has it, and passes on what that one says. All of it goes through the
//! [`State`]: an errand is a value that its taker removes, so that it is taken once; what is said about it is a log;
//! messages only tell that there is something to look at, so nothing is lost with one of them.
//!
//! Nothing here costs anything before there is something to [keep](Replicas::register) for others: only then does a process
//! say that it is there, and listen.

mod presence;
mod replica_request;
mod replica_responses;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};

pub use replica_request::{ReplicaRequest, ReplicaResponder, Requester};
pub use replica_responses::ReplicaResponses;

use crate::state::{State, StateError};
use crate::task::random_id;

/// How often a process says that it is there.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(2);

/// How long it is believed to be there after it last said so. All of them go by the clock of the state.
pub(crate) const HEARTBEAT_TTL: Duration = Duration::from_secs(8);

/// How long a process that is there may take to take an errand.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest that somebody waits for an errand, and that what is said about it is kept.
pub(crate) const REQUEST_TTL: Duration = Duration::from_secs(3600);

/// Errands of others that a process is busy with at the same time; the rest waits.
const MAX_CONCURRENT_REQUESTS: usize = 1024;

/// One of several processes that share a state; clones are the same one.
#[derive(Clone)]
pub struct Replicas {
    shared: Arc<ReplicaShared>,
}

pub(crate) struct ReplicaShared {
    state: State,
    name: String,
    registrations: Mutex<Registrations>,
    /// Whether others can find this process.
    is_present: watch::Sender<bool>,
    slots: Arc<Semaphore>,
}

/// What this process keeps for others.
#[derive(Default)]
struct Registrations {
    handlers: HashMap<String, RequestHandler>,
    /// Whether somebody says that this process is there.
    is_heartbeat_running: bool,
}

type RequestHandler = Arc<dyn Fn(ReplicaRequest) + Send + Sync>;

/// Why an errand came to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplicaError {
    /// The process is gone, or went while the errand was run.
    Gone,
    /// The process has no such thing any more.
    Unknown,
    /// The process is there and has not taken it.
    Busy,
    /// The state that they share failed, or the errand is too long for it.
    State(StateError),
}

impl From<StateError> for ReplicaError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("the process that had it is gone"),
            Self::Unknown => formatter.write_str("the process that had it has it no more"),
            Self::Busy => formatter.write_str("the process that has it is too busy; try again"),
            Self::State(error) => write!(formatter, "it cannot be handed on: {error}"),
        }
    }
}

impl std::error::Error for ReplicaError {}

/// Something that is kept for others until this is dropped.
#[must_use = "others find it for as long as this lives"]
pub struct Registration {
    shared: Arc<ReplicaShared>,
    target: String,
}

impl Replicas {
    /// This process, as one of those that share the state. Its name is a new one, so that a process that was started
    /// again is not taken for the one before; `None` when the system has no randomness for it.
    #[must_use]
    pub fn new(state: State) -> Option<Self> {
        let name = random_id().ok()?;
        let (kept, present) = (Mutex::default(), watch::Sender::new(false));
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS));
        Some(Self {
            shared: Arc::new(ReplicaShared {
                state,
                name,
                registrations: kept,
                is_present: present,
                slots,
            }),
        })
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
    pub async fn register(
        &self,
        target: &str,
        take: impl Fn(ReplicaRequest) + Send + Sync + 'static,
    ) -> Registration {
        let keeping = Registration { shared: Arc::clone(&self.shared), target: target.to_owned() };
        self.shared.registrations().handlers.insert(target.to_owned(), Arc::new(take));
        presence::start(&self.shared);
        let mut present = self.shared.is_present.subscribe();
        // A state that fails is told of in the log; who comes back to this process finds everything all the same.
        _ = tokio::time::timeout(HEARTBEAT_TTL, present.wait_for(|present| *present)).await;
        keeping
    }

    /// Sends an errand about a target to a process that has it; what it says to it is read from what is given back.
    ///
    /// # Errors
    /// When the process is not there, the errand is longer than a value of the state, or the state fails.
    pub async fn send(
        &self,
        to: &str,
        target: &str,
        errand: Bytes,
    ) -> Result<ReplicaResponses, ReplicaError> {
        if !self.shared.is_alive(to).await? {
            return Err(ReplicaError::Gone);
        }
        ReplicaResponses::send(Arc::clone(&self.shared), to, target, errand).await
    }

    /// Tells the others that this process is gone, so that nobody waits until they notice.
    pub async fn leave(&self) {
        self.shared.registrations().handlers.clear();
        // Who cannot be told notices a little later.
        _ = self.shared.state.remove(&presence_path(&self.shared.name)).await;
    }
}

impl ReplicaShared {
    async fn is_alive(&self, name: &str) -> Result<bool, StateError> {
        let is_name = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(is_name && self.state.get(&presence_path(name)).await?.is_some())
    }

    fn handler(&self, target: &str) -> Option<RequestHandler> {
        self.registrations().handlers.get(target).cloned()
    }

    fn registrations(&self) -> MutexGuard<'_, Registrations> {
        self.registrations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let taker = self.shared.registrations().handlers.remove(&self.target);
        // Outside of the lock: it may hold on to anything.
        drop(taker);
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Peers").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// Where a process says that it is there, and the topic on which it is told of errands.
fn presence_path(name: &str) -> String {
    format!("peer/{name}")
}

/// The errand itself, until it is taken.
fn request_path(id: &str) -> String {
    format!("errand/{id}")
}

/// There for as long as somebody waits for the errand; also the topic on which its end is told.
fn waiter_path(id: &str) -> String {
    format!("errand/{id}/waiting")
}

/// The log of what is said about an errand, and the topic on which that is told.
fn responses_path(id: &str) -> String {
    format!("errand/{id}/replies")
}
