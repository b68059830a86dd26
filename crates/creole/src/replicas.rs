//! Replicas: processes that share a state, and the requests between them.
//!
//! A client may return to another replica than the one that holds its call or stream. The replica that gets the
//! client's request then sends a replica request to the holder, and relays its responses. All of it goes through the
//! [`State`]. A replica request is a value that the receiver removes, so that it is accepted once. Its responses are a
//! log. Messages only signal that there is something to read, so a lost message loses no data.
//!
//! A process sends heartbeats and listens only after it [registers](Replicas::register) its first session or call. That
//! it exists, and which formats of records it reads, it [announces](Replicas::announce) from its start.

mod announcement;
mod presence;
mod replica_request;
mod replica_responses;

#[cfg(test)]
mod tests;

use crate::sync::Mutex;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};

pub use announcement::{OtherReplica, ReplicaDescription};
pub use replica_request::{ReplicaRequest, ReplicaResponder, Requester};
pub use replica_responses::ReplicaResponses;

use crate::state::{State, StateError};
use crate::task::random_id;
use crate::telemetry::metrics::{Metrics, table};

/// The interval between two heartbeats. A hundred replicas make 34 a second.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(3);

/// How often a replica that waits for another one looks whether it is still there.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// How long a replica counts as present after its last heartbeat. All replicas use the clock of the state.
pub(crate) const HEARTBEAT_TTL: Duration = Duration::from_secs(8);

/// How long a replica that is present may take to accept a request.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(15);

/// The longest wait for a replica request, and how long its responses are kept.
pub(crate) const REQUEST_TTL: Duration = Duration::from_secs(3600);

/// Requests of other replicas that a process handles at the same time; the rest waits.
const MAX_CONCURRENT_REQUESTS: usize = 1024;

/// How often a replica that stops looks whether it still handles requests.
const FINISH_INTERVAL: Duration = Duration::from_millis(50);

/// This process as one of several replicas; clones are the same replica.
#[derive(Clone)]
pub struct Replicas {
    shared: Arc<ReplicaShared>,
}

pub(crate) struct ReplicaShared {
    state: State,
    name: String,
    registrations: Mutex<Registrations>,
    presence: watch::Sender<Presence>,
    slots: Arc<Semaphore>,
    metrics: OnceLock<Arc<Metrics>>,
    is_announced: AtomicBool,
    /// What it tells the others about itself.
    description: watch::Sender<ReplicaDescription>,
    /// The other replicas that announced themselves.
    others: Mutex<Vec<OtherReplica>>,
}

/// Whether other replicas can find this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// Nothing is registered, or the first heartbeat is on its way.
    Absent,
    /// The last heartbeat was written.
    Present,
    /// The state failed, and the heartbeat is written when it works again.
    Failing,
}

/// The targets that this process registered for other replicas.
#[derive(Default)]
struct Registrations {
    handlers: HashMap<String, RequestHandler>,
    /// Whether the heartbeat task is running.
    is_heartbeat_running: bool,
}

type RequestHandler = Arc<dyn Fn(ReplicaRequest) + Send + Sync>;

/// Why a replica request failed.
#[derive(Clone, Debug, PartialEq)]
pub enum ReplicaError {
    /// The replica has stopped, or stopped while it handled the request.
    Gone,
    /// The replica no longer has the target.
    Unknown,
    /// The replica is present and has not accepted the request, or cannot read it yet.
    Busy,
    /// The shared state failed, or the request is too long for it.
    State(StateError),
}

impl ReplicaError {
    /// Whether the same request may succeed in a moment.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Busy => true,
            Self::State(error) => error.is_temporary(),
            Self::Gone | Self::Unknown => false,
        }
    }
}

impl From<StateError> for ReplicaError {
    fn from(error: StateError) -> Self {
        match error {
            // The replicas agree on a format as soon as they know of each other.
            StateError::UnknownFormat { .. } => Self::Busy,
            error => Self::State(error),
        }
    }
}

impl fmt::Display for ReplicaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => formatter.write_str("its replica has ended"),
            Self::Unknown => formatter.write_str("its replica no longer has it"),
            Self::Busy => formatter.write_str("its replica is busy; try again"),
            Self::State(error) => {
                write!(formatter, "cannot forward the request to its replica: {error}")
            }
        }
    }
}

impl std::error::Error for ReplicaError {}

/// A target that stays registered until this is dropped.
#[must_use = "the registration ends when this is dropped"]
pub struct Registration {
    shared: Arc<ReplicaShared>,
    target: String,
}

impl Replicas {
    /// This process as a replica of the state. It gets a new name, so that a restarted process is not mistaken for its
    /// former instance. `None` when the system has no random bytes.
    #[must_use]
    pub fn new(state: State) -> Option<Self> {
        let name = random_id().ok()?;
        let (registration, presence) = (Mutex::default(), watch::Sender::new(Presence::Absent));
        let slots = Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS));
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let description = ReplicaDescription { started, ..ReplicaDescription::default() };
        Some(Self {
            shared: Arc::new(ReplicaShared {
                state,
                name,
                registrations: registration,
                presence,
                slots,
                metrics: OnceLock::new(),
                is_announced: AtomicBool::new(false),
                description: watch::Sender::new(description),
                others: Mutex::default(),
            }),
        })
    }

    /// The name of this process among the replicas.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The shared state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.shared.state
    }

    /// Passes requests for `target` to `take`, which must not block, as long as the returned registration lives.
    /// Returns once other replicas can find this process, or when the state fails: clients that return to this process
    /// are served all the same.
    pub async fn register(
        &self,
        target: &str,
        take: impl Fn(ReplicaRequest) + Send + Sync + 'static,
    ) -> Registration {
        let registration =
            Registration { shared: Arc::clone(&self.shared), target: target.to_owned() };
        self.shared.registrations().handlers.insert(target.to_owned(), Arc::new(take));
        presence::start(&self.shared);
        let mut presence = self.shared.presence.subscribe();
        let is_known = |presence: &Presence| *presence != Presence::Absent;
        _ = tokio::time::timeout(HEARTBEAT_TTL, presence.wait_for(is_known)).await;
        registration
    }

    /// Sends a request about a target to the replica that has it; its responses are read from the returned value.
    ///
    /// # Errors
    /// When the replica is not present, the request is longer than a value of the state, or the state fails.
    pub async fn send(
        &self,
        to: &str,
        target: &str,
        request: Bytes,
    ) -> Result<ReplicaResponses, ReplicaError> {
        let sent = self.send_uncounted(to, target, request).await;
        if let Some(metrics) = self.shared.metrics.get() {
            let outcome = match &sent {
                Ok(_) => "sent",
                Err(ReplicaError::Gone) => "gone",
                Err(ReplicaError::Unknown) => "unknown",
                Err(ReplicaError::Busy) => "busy",
                Err(ReplicaError::State(_)) => "failed",
            };
            metrics.count(&table::REPLICA_REQUESTS, &[target_kind(target), outcome]);
        }
        sent
    }

    async fn send_uncounted(
        &self,
        to: &str,
        target: &str,
        request: Bytes,
    ) -> Result<ReplicaResponses, ReplicaError> {
        if !self.shared.is_alive(to).await? {
            return Err(self.shared.absence_error());
        }
        ReplicaResponses::send(Arc::clone(&self.shared), to, target, request).await
    }

    /// Announces this process to the other replicas until it leaves, and counts them and the requests to them, if metrics
    /// are enabled. Only the first call has an effect. Must be called within a tokio runtime.
    pub fn announce(&self, metrics: &Arc<Metrics>) {
        if self.shared.is_announced.swap(true, Ordering::Relaxed) {
            return;
        }
        let gauge = metrics.is_enabled().then(|| metrics.gauge(&table::REPLICAS, &[]));
        if gauge.is_some() {
            _ = self.shared.metrics.set(Arc::clone(metrics));
        }
        announcement::start(&self.shared, gauge);
    }

    /// Sets what this replica announces of itself: the version of its program, and the digest of its configuration.
    pub fn describe(&self, version: &str, config: String) {
        self.shared.description.send_modify(|description| {
            (description.version, description.config) = (version.to_owned(), config);
        });
    }

    /// The other replicas, as far as they announced themselves, the oldest first.
    pub fn others(&self) -> Vec<OtherReplica> {
        self.shared.others.lock().clone()
    }

    /// Waits until no request of another replica is handled here: the clients of calls that run here wait there. New
    /// requests are still accepted.
    pub async fn finish_requests(&self) {
        while self.shared.slots.available_permits() < MAX_CONCURRENT_REQUESTS {
            tokio::time::sleep(FINISH_INTERVAL).await;
        }
    }

    /// Notifies the other replicas that this process stops, so that they need not wait for its heartbeat to expire.
    pub async fn leave(&self) {
        self.shared.registrations().handlers.clear();
        if self.shared.is_announced.load(Ordering::Relaxed) {
            // If this fails, the replica counts a little longer.
            _ = announcement::leave(&self.shared).await;
        }
        // If this fails, the heartbeat expires a little later.
        _ = self.shared.state.remove(&presence_path(&self.shared.name)).await;
    }
}

impl ReplicaShared {
    async fn is_alive(&self, name: &str) -> Result<bool, StateError> {
        let is_name = name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(is_name && self.state.get(&presence_path(name)).await?.is_some())
    }

    /// The error of a replica without a heartbeat. After an outage of the state it may be about to write one.
    fn absence_error(&self) -> ReplicaError {
        match self.state.was_unavailable_within(HEARTBEAT_TTL) {
            true => ReplicaError::Busy,
            false => ReplicaError::Gone,
        }
    }

    fn handler(&self, target: &str) -> Option<RequestHandler> {
        self.registrations().handlers.get(target).cloned()
    }

    fn registrations(&self) -> MutexGuard<'_, Registrations> {
        self.registrations.lock()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let handler = self.shared.registrations().handlers.remove(&self.target);
        // Dropped outside of the lock, because it may own anything.
        drop(handler);
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Peers").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

/// The kind of a target, for the metrics.
fn target_kind(target: &str) -> &'static str {
    match target.split('/').next() {
        Some("call") => "parked",
        Some("events") => "stream",
        _ => "message",
    }
}

/// The key of a replica's presence, and the topic that announces requests to it.
fn presence_path(name: &str) -> String {
    format!("peer/{name}")
}

/// The key of a request until it is accepted.
fn request_path(id: &str) -> String {
    format!("errand/{id}")
}

/// Exists as long as the requester waits; also the topic that announces that it stopped waiting.
fn waiter_path(id: &str) -> String {
    format!("errand/{id}/waiting")
}

/// The log of the responses to a request, and the topic that announces them.
fn responses_path(id: &str) -> String {
    format!("errand/{id}/replies")
}
