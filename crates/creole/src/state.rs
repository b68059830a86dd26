//! Storage for data that outlives a request, such as tasks and sessions, behind one small interface.
//!
//! The interface has four parts: keyed values with a time to live and compare-and-set, logs that are read from a
//! position, messages to subscribers, and leases. A [`State`] keeps them in memory, in an SQLite file, in a Valkey or
//! Redis server or in a PostgreSQL database. All backends make the same guarantees, because one test suite runs on each
//! of them.
//!
//! The size of everything is bounded ([`StateLimits`]). There is no background work: expired data is never returned,
//! and every later write deletes some of it.

mod availability;
mod clock;
mod error;
mod lease;
mod limits;
mod memory;
mod meter;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod protection;
mod record;
mod shared_time;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(any(feature = "postgres", feature = "valkey"))]
mod store_clock;
mod topics;
#[cfg(feature = "valkey")]
mod valkey;

#[cfg(test)]
mod conformance;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use availability::Availability;
use clock::Clock;
pub use error::{StateError, StateFileError};
pub use lease::Lease;
pub(crate) use limits::LogRetention;
pub use limits::StateLimits;
use memory::MemoryState;
use meter::StateMeter;
#[cfg(feature = "postgres")]
pub use postgres::PostgresSettings;
#[cfg(feature = "postgres")]
use postgres::PostgresState;
pub use protection::StateProtection;
use protection::StoredKind;
use record::RecordCodec;
pub use record::RecordFormats;
#[cfg(feature = "sqlite")]
use sqlite::SqliteState;
#[doc(hidden)]
pub use topics::{Subscription, TopicEvent};
#[cfg(feature = "valkey")]
use valkey::ValkeyState;
#[cfg(feature = "valkey")]
pub use valkey::{ValkeySentinel, ValkeySettings};

use crate::telemetry::metrics::Metrics;

/// The result of every operation on the state.
pub type Result<T> = std::result::Result<T, StateError>;

/// Stores data that outlives a request. Clones are cheap and share everything.
///
/// If the future of a change is dropped, the change may or may not have happened, but never in part.
#[derive(Clone, Debug)]
pub struct State {
    backend: Backend,
    limits: StateLimits,
    clock: Clock,
    meter: Option<Arc<StateMeter>>,
    records: RecordCodec,
    availability: Arc<Availability>,
}

/// An enum rather than a trait object: no future is boxed, and an operation in memory completes at once.
#[derive(Clone, Debug)]
enum Backend {
    Memory(Arc<MemoryState>),
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteState),
    #[cfg(feature = "valkey")]
    Valkey(ValkeyState),
    #[cfg(feature = "postgres")]
    Postgres(PostgresState),
}

/// A stored value with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateEntry {
    /// The value.
    pub value: Bytes,
    /// Increases with every write and is never reused, not even after the key was removed.
    pub version: u64,
    /// The number of the format in which it is stored.
    pub format: u8,
}

/// A value as it is stored, with its version.
#[derive(Debug)]
struct StoredEntry {
    value: Bytes,
    version: u64,
}

/// Values and leases have separate namespaces, so that no key can be mistaken for a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    Entries,
    Leases,
}

impl Namespace {
    fn stored_kind(self) -> StoredKind {
        match self {
            Self::Entries => StoredKind::Entry,
            Self::Leases => StoredKind::Lease,
        }
    }
}

/// The condition on a key under which a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Any,
    Absent,
    Version(u64),
}

impl Condition {
    fn matches(self, found: Option<u64>) -> bool {
        match self {
            Self::Any => true,
            Self::Absent => found.is_none(),
            Self::Version(version) => found == Some(version),
        }
    }
}

impl State {
    fn new(backend: Backend, limits: StateLimits, clock: Clock) -> Self {
        Self {
            backend,
            limits,
            clock,
            meter: None,
            records: RecordCodec::default(),
            availability: Arc::default(),
        }
    }

    /// The same state, which measures its operations.
    #[doc(hidden)]
    #[must_use]
    pub fn measured(mut self, metrics: &Arc<Metrics>) -> Self {
        self.meter = Some(Arc::new(StateMeter::new(metrics)));
        self
    }

    /// Whether other processes may use the same state.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        !matches!(self.backend, Backend::Memory(_))
    }

    /// What stores it: `memory`, `sqlite`, `valkey` or `postgres`.
    #[must_use]
    pub fn backend_name(&self) -> &'static str {
        match self.backend {
            Backend::Memory(_) => "memory",
            #[cfg(feature = "sqlite")]
            Backend::Sqlite(_) => "sqlite",
            #[cfg(feature = "valkey")]
            Backend::Valkey(_) => "valkey",
            #[cfg(feature = "postgres")]
            Backend::Postgres(_) => "postgres",
        }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// When the key is longer than the limits allow, the file fails, or a newer version wrote the value.
    pub async fn get(&self, key: &str) -> Result<Option<StateEntry>> {
        self.limits.check_key(key)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => Ok(memory.get(Namespace::Entries, key, now)),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.get(Namespace::Entries, key, now).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => {
                    valkey.get(Namespace::Entries, key, self.clock.given()).await
                }
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => {
                    postgres.get(Namespace::Entries, key, self.clock.given()).await
                }
            }
        };
        let found = self.observe("get", |_| false, operation).await?;
        let Some(StoredEntry { value, version }) = found else { return Ok(None) };
        let record = self.records.decode(StoredKind::Entry, key, value)?;
        Ok(record.map(|(format, value)| StateEntry { value, version, format }))
    }

    /// Writes a value unconditionally and returns its version. The value expires after `ttl`.
    ///
    /// # Errors
    /// When it does not fit the limits, or the file fails; then nothing was changed.
    pub async fn put(&self, key: &str, value: Bytes, ttl: Option<Duration>) -> Result<u64> {
        let written = self.write(Namespace::Entries, key, Condition::Any, value, ttl).await?;
        // A write without a condition cannot fail on the condition.
        Ok(written.unwrap_or_default())
    }

    /// Writes a value if the key still has the expected version, or still is absent, and returns the new version;
    /// `None` when another writer was faster.
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

    /// Sets a new time to live and leaves the value and its version unchanged. Returns whether the value existed.
    ///
    /// # Errors
    /// When the key is longer than the limits allow, or the file fails.
    pub async fn touch(&self, key: &str, ttl: Option<Duration>) -> Result<bool> {
        self.prolong(Namespace::Entries, key, Condition::Any, ttl).await
    }

    /// Removes a value and returns whether it existed.
    ///
    /// # Errors
    /// When the key is longer than the limits allow, or the file fails.
    pub async fn remove(&self, key: &str) -> Result<bool> {
        self.discard(Namespace::Entries, key, Condition::Any).await
    }

    /// Appends an entry to a log and returns its number. The first entry of a log has number 1 and creates the log. A
    /// name that is used again after [`Self::remove_log`] starts at 1 again, so code that gives numbers to clients uses
    /// a new name for each log.
    ///
    /// # Errors
    /// When it does not fit the limits, or the file fails; then nothing was changed.
    pub(crate) async fn append(&self, log: &str, entry: Bytes, keep: LogRetention) -> Result<u64> {
        self.limits.check_key(log)?;
        self.limits.check_value(&entry)?;
        self.limits.check_retention(keep)?;
        let entry = self.records.encode(StoredKind::LogEntry, log, &entry)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => memory.append(log, &entry, keep, now),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.append(log, entry, keep, now).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => {
                    valkey.append(log, entry, keep, self.clock.given()).await
                }
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => {
                    postgres.append(log, entry, keep, self.clock.given()).await
                }
            }
        };
        self.observe("append", |_| false, operation).await
    }

    /// The entries of a log after a number, in order, at most `most` of them. A log that does not exist has none.
    ///
    /// # Errors
    /// [`StateError::Trimmed`] when entries after that number were already deleted, or when the log never reached that
    /// number; otherwise when the file fails, or a newer version wrote an entry.
    pub(crate) async fn read_after(
        &self,
        log: &str,
        after: u64,
        max: usize,
    ) -> Result<Vec<(u64, Bytes)>> {
        self.limits.check_key(log)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => memory.read_after(log, after, max, now),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.read_after(log, after, max, now).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => {
                    valkey.read_after(log, after, max, self.clock.given()).await
                }
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => {
                    postgres.read_after(log, after, max, self.clock.given()).await
                }
            }
        };
        let entries = self.observe("read", |_| false, operation).await?;
        let decoded = entries.into_iter().filter_map(|(number, entry)| {
            let record = self.records.decode(StoredKind::LogEntry, log, entry).transpose()?;
            Some(record.map(|(_, entry)| (number, entry)))
        });
        decoded.collect()
    }

    /// Removes a log with all its entries and returns whether it existed.
    ///
    /// # Errors
    /// When the name is longer than the limits allow, or the file fails.
    pub(crate) async fn remove_log(&self, log: &str) -> Result<bool> {
        self.limits.check_key(log)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => Ok(memory.remove_log(log, now)),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.remove_log(log, now).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => valkey.remove_log(log, self.clock.given()).await,
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => postgres.remove_log(log, self.clock.given()).await,
            }
        };
        self.observe("remove", |_| false, operation).await
    }

    /// Sends a message to all current subscribers of a topic. Messages of one publisher arrive in order. The publisher
    /// never waits: a subscriber that is too slow learns that it missed messages.
    ///
    /// # Errors
    /// When topic or message are longer than the limits allow, or the file fails.
    #[doc(hidden)]
    pub async fn publish(&self, topic: &str, message: Bytes) -> Result<()> {
        self.limits.check_key(topic)?;
        self.limits.check_message(&message)?;
        let message = self.records.encode(StoredKind::Message, topic, &message)?;
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => {
                    memory.topics().publish(topic, &message);
                    Ok(())
                }
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.publish(topic, message, self.clock.now()).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => valkey.publish(topic, &message).await,
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => postgres.publish(topic, &message).await,
            }
        };
        self.observe("publish", |_| false, operation).await
    }

    /// Subscribes to a topic: every message that is published after this returns is received.
    ///
    /// # Errors
    /// When the topic is longer or the subscribers are more than the limits allow, or the file fails.
    #[doc(hidden)]
    pub async fn subscribe(&self, topic: &str) -> Result<Subscription> {
        self.limits.check_key(topic)?;
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => memory.topics().subscribe(topic),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.subscribe(topic).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => valkey.subscribe(topic).await,
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => postgres.subscribe(topic).await,
            }
        };
        let subscription = self.observe("subscribe", |_| false, operation).await?;
        Ok(subscription.decoded_by(self.records.clone()))
    }

    /// Takes a lease, unless it is already held.
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
        let value = self.records.encode(space.stored_kind(), key, &value)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => memory.write(space, key, condition, &value, ttl, now),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => {
                    sqlite.write(space, key, condition, value, ttl, now).await
                }
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => {
                    let given = self.clock.given();
                    valkey.write(space, key, condition, value, ttl, given).await
                }
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => {
                    postgres.write(space, key, condition, value, ttl, self.clock.given()).await
                }
            }
        };
        self.observe("write", Option::is_none, operation).await
    }

    async fn prolong(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
    ) -> Result<bool> {
        self.limits.check_key(key)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => Ok(memory.touch(space, key, condition, ttl, now)),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.touch(space, key, condition, ttl, now).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => {
                    valkey.touch(space, key, condition, ttl, self.clock.given()).await
                }
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => {
                    postgres.touch(space, key, condition, ttl, self.clock.given()).await
                }
            }
        };
        self.observe("touch", |_| false, operation).await
    }

    async fn discard(&self, space: Namespace, key: &str, condition: Condition) -> Result<bool> {
        self.limits.check_key(key)?;
        let now = self.clock.now();
        let operation = async {
            match &self.backend {
                Backend::Memory(memory) => Ok(memory.remove(space, key, condition, now)),
                #[cfg(feature = "sqlite")]
                Backend::Sqlite(sqlite) => sqlite.remove(space, key, condition, now).await,
                #[cfg(feature = "valkey")]
                Backend::Valkey(valkey) => {
                    valkey.remove(space, key, condition, self.clock.given()).await
                }
                #[cfg(feature = "postgres")]
                Backend::Postgres(postgres) => {
                    postgres.remove(space, key, condition, self.clock.given()).await
                }
            }
        };
        self.observe("remove", |_| false, operation).await
    }

    /// Runs an operation, measures it, and remembers whether the state was available.
    async fn observe<T>(
        &self,
        verb: &'static str,
        is_lost: fn(&T) -> bool,
        operation: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let result = meter::measure(self.meter.as_deref(), verb, is_lost, operation).await;
        self.availability.record(&result);
        result
    }
}
