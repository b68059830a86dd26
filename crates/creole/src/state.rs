//! What outlives a request: one small interface behind which tasks and sessions live.
//!
//! Four verbs cover all of it: keyed values with an age and compare-and-set, logs that are read from a
//! place, messages to whoever listens, and leases. A [`State`] keeps them in memory or in an SQLite
//! file; what one backend promises, all of them promise, because one suite of tests runs on each.
//!
//! Nothing here grows without end ([`StateLimits`]), and nothing here wakes up by itself: what is too old is
//! never shown again, and is thrown away a little with every later write.

mod error;
mod lease;
mod limits;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
mod topics;

#[cfg(test)]
mod conformance;

#[cfg(feature = "sqlite")]
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

pub use error::{StateError, StateFileError};
pub use lease::Lease;
pub use limits::{LogRetention, StateLimits};
use memory::MemoryState;
#[cfg(feature = "sqlite")]
use sqlite::SqliteState;
pub use topics::{Subscription, TopicEvent};

/// What every call here comes to.
pub type Result<T> = std::result::Result<T, StateError>;

/// A place for what outlives a request. Clones are cheap and share everything.
///
/// Dropping the future of a call that changes something leaves open whether it was changed; the change
/// is made as a whole or not at all.
#[derive(Clone, Debug)]
pub struct State {
    backend: Backend,
    limits: StateLimits,
}

/// An enum rather than a trait object: no future is boxed, and a call in memory is done when it is made.
#[derive(Clone, Debug)]
enum Backend {
    Memory(Arc<MemoryState>),
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteState),
}

/// A value as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateEntry {
    /// The value.
    pub value: Bytes,
    /// Grows with every write and is never given out twice, also not after the key was removed.
    pub version: u64,
}

/// Values and leases have names of their own, so that no key can be mistaken for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Entries,
    Leases,
}

/// What must be true of a key for a change to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Any,
    Absent,
    Version(u64),
}

impl Condition {
    fn holds(self, found: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => found.is_none(),
            Self::Version(version) => found == Some(version),
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self::memory(StateLimits::default())
    }
}

impl State {
    /// A state that lives as long as the process.
    #[must_use]
    pub fn memory(limits: StateLimits) -> Self {
        Self { backend: Backend::Memory(Arc::new(MemoryState::new(limits))), limits }
    }

    /// A state in an SQLite file, which is made if it is not there. Several processes of one machine may
    /// share it; a file on a network drive cannot be shared safely.
    ///
    /// What was acknowledged survives `kill -9` and a loss of power. Ages are told by the clock of the
    /// system, because they have to hold for the next process too: setting the clock forward ends what
    /// is young.
    ///
    /// # Errors
    /// When the file cannot be opened, is damaged, belongs to another program or to a newer version. It
    /// is then left as it is.
    #[cfg(feature = "sqlite")]
    pub async fn sqlite(path: impl Into<PathBuf>, limits: StateLimits) -> Result<Self> {
        let sqlite = SqliteState::open(path.into(), limits).await?;
        Ok(Self { backend: Backend::Sqlite(sqlite), limits })
    }

    /// Whether other processes may have the same state.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !matches!(self.backend, Backend::Memory(_))
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When the key is longer than the limits allow, or the file fails.
    pub async fn get(&self, key: &str) -> Result<Option<StateEntry>> {
        self.limits.check_key(key)?;
        match &self.backend {
            Backend::Memory(memory) => Ok(memory.get(Namespace::Entries, key)),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.get(Namespace::Entries, key).await,
        }
    }

    /// Writes a value, whatever there was, and gives its version. It is gone once `ttl` has passed.
    ///
    /// # Errors
    /// When it does not fit the limits, or the file fails; then nothing was changed.
    pub async fn put(&self, key: &str, value: Bytes, ttl: Option<Duration>) -> Result<u64> {
        let written = self.write(Namespace::Entries, key, Condition::Any, value, ttl).await?;
        // A write without a condition cannot lose.
        Ok(written.unwrap_or_default())
    }

    /// Writes a value if the key still has the expected version, or still is absent, and gives the new
    /// version; `None` when somebody else was faster.
    ///
    /// # Errors
    /// When it does not fit the limits, or the file fails; then nothing was changed.
    pub async fn swap(
        &self,
        key: &str,
        expected: Option<u64>,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Option<u64>> {
        let condition = expected.map_or(Condition::Absent, Condition::Version);
        self.write(Namespace::Entries, key, condition, value, ttl).await
    }

    /// Gives a value a new age and leaves it and its version as they are. Tells whether it was there.
    ///
    /// # Errors
    /// When the key is longer than the limits allow, or the file fails.
    pub async fn touch(&self, key: &str, ttl: Option<Duration>) -> Result<bool> {
        self.prolong(Namespace::Entries, key, Condition::Any, ttl).await
    }

    /// Removes a value and tells whether it was there.
    ///
    /// # Errors
    /// When the key is longer than the limits allow, or the file fails.
    pub async fn remove(&self, key: &str) -> Result<bool> {
        self.discard(Namespace::Entries, key, Condition::Any).await
    }

    /// Writes an entry at the end of a log and gives its number. The first one of a log is 1. A log
    /// comes into being with its first entry; a name that is used again after [`Self::remove_log`]
    /// begins anew, so whoever hands numbers to clients takes a new name for each log.
    ///
    /// # Errors
    /// When it does not fit the limits, or the file fails; then nothing was changed.
    pub async fn append(&self, log: &str, entry: Bytes, keep: LogRetention) -> Result<u64> {
        self.limits.check_key(log)?;
        self.limits.check_value(&entry)?;
        self.limits.check_retention(keep)?;
        match &self.backend {
            Backend::Memory(memory) => memory.append(log, &entry, keep),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.append(log, entry, keep).await,
        }
    }

    /// The entries of a log after a number, in order, and `most` of them at the most. A log that does
    /// not exist has none.
    ///
    /// # Errors
    /// [`StateError::Trimmed`] when entries after that number were thrown away already, or when the log
    /// never came that far; otherwise when the file fails.
    pub async fn read_after(
        &self,
        log: &str,
        after: u64,
        most: usize,
    ) -> Result<Vec<(u64, Bytes)>> {
        self.limits.check_key(log)?;
        match &self.backend {
            Backend::Memory(memory) => memory.read_after(log, after, most),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.read_after(log, after, most).await,
        }
    }

    /// Removes a log with all its entries and tells whether it was there.
    ///
    /// # Errors
    /// When the name is longer than the limits allow, or the file fails.
    pub async fn remove_log(&self, log: &str) -> Result<bool> {
        self.limits.check_key(log)?;
        match &self.backend {
            Backend::Memory(memory) => Ok(memory.remove_log(log)),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.remove_log(log).await,
        }
    }

    /// Tells a message to everybody who listens to a topic now. Messages of one publisher arrive in
    /// their order. Nobody is waited for: who is too slow is told that something was missed.
    ///
    /// # Errors
    /// When topic or message are longer than the limits allow, or the file fails.
    pub async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        self.limits.check_key(topic)?;
        self.limits.check_message(&message)?;
        match &self.backend {
            Backend::Memory(memory) => {
                memory.topics().publish(topic, &message);
                Ok(())
            }
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.publish(topic, message).await,
        }
    }

    /// Listens to a topic: what is published once this has returned will be told.
    ///
    /// # Errors
    /// When the topic is longer or the listeners are more than the limits allow, or the file fails.
    pub async fn subscribe(&self, topic: &str) -> Result<Subscription> {
        self.limits.check_key(topic)?;
        match &self.backend {
            Backend::Memory(memory) => memory.topics().subscribe(topic),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.subscribe(topic).await,
        }
    }

    /// Takes a lease, unless somebody holds it.
    ///
    /// # Errors
    /// When it does not fit the limits, or the file fails.
    pub async fn lease(&self, name: &str, ttl: Duration) -> Result<Option<Lease>> {
        let absent = Condition::Absent;
        let taken = self.write(Namespace::Leases, name, absent, Bytes::new(), Some(ttl)).await?;
        Ok(taken.map(|fence| Lease::new(self.clone(), name, fence)))
    }

    async fn write(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        value: Bytes,
        ttl: Option<Duration>,
    ) -> Result<Option<u64>> {
        self.limits.check_key(key)?;
        self.limits.check_value(&value)?;
        match &self.backend {
            Backend::Memory(memory) => memory.write(space, key, condition, &value, ttl),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.write(space, key, condition, value, ttl).await,
        }
    }

    async fn prolong(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
    ) -> Result<bool> {
        self.limits.check_key(key)?;
        match &self.backend {
            Backend::Memory(memory) => Ok(memory.touch(space, key, condition, ttl)),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.touch(space, key, condition, ttl).await,
        }
    }

    async fn discard(&self, space: Namespace, key: &str, condition: Condition) -> Result<bool> {
        self.limits.check_key(key)?;
        match &self.backend {
            Backend::Memory(memory) => Ok(memory.remove(space, key, condition)),
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(sqlite) => sqlite.remove(space, key, condition).await,
        }
    }
}
