//! A state in a PostgreSQL database, which several machines may share. Every change is one statement: a function of the
//! schema, which is a transaction of its own. The clock of the server decides what has expired.

mod connect_attempts;
mod connection;
mod entries;
mod failure;
mod logs;
mod messages;
mod notifications;
mod pool;
mod schema;
mod session;
mod settings;

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod server_tests;
#[cfg(test)]
pub(super) mod test_server;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::task::AbortHandle;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::store_clock::StoreClock;
use super::topics::{Subscription, Topics};
use super::{Result, StateError, StateLimits};
use crate::sync::Mutex;
use connection::{PostgresQuery, StatementParameters};
use failure::ConnectFailure;
use messages::MessageFeed;
use pool::PostgresPool;
pub use settings::PostgresSettings;

/// Maximum time to live in microseconds, some 100 000 years: the sum with the time is still a number of the database.
const MAX_TIME_TO_LIVE: i64 = 4_000_000_000_000_000_000;

/// A handle to the database. Clones share everything.
#[derive(Clone, Debug)]
pub(super) struct PostgresState {
    shared: Arc<PostgresShared>,
}

#[derive(Debug)]
struct PostgresShared {
    pool: Arc<PostgresPool>,
    feed: Arc<MessageFeed>,
    limits: StateLimits,
    /// The tasks that read messages, from the first subscription on.
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Drop for PostgresShared {
    fn drop(&mut self) {
        for task in self.tasks.get_mut().drain(..) {
            task.abort();
        }
    }
}

impl PostgresState {
    pub(super) async fn open(settings: &PostgresSettings, limits: StateLimits) -> Result<Self> {
        let checked = settings.checked().map_err(|problem| StateError::Misconfigured {
            store: "postgres".into(),
            problem: problem.into(),
        })?;
        let store = Arc::clone(&checked.store);
        let pool = Arc::new(PostgresPool::new(checked));
        match pool.open_first().await {
            // The pool has logged that the server cannot be reached. It tries again with the next operation.
            Ok(()) | Err(ConnectFailure::Unreachable(_)) => {}
            Err(ConnectFailure::Misconfigured(problem)) => {
                return Err(StateError::Misconfigured { store, problem: problem.into() });
            }
        }
        let topics = Arc::new(Topics::new(limits));
        let feed = Arc::new(MessageFeed::new(Arc::clone(&pool), topics)?);
        Ok(Self {
            shared: Arc::new(PostgresShared { pool, feed, limits, tasks: Mutex::default() }),
        })
    }

    /// The clock of the server.
    pub(super) fn clock(&self) -> &StoreClock {
        self.shared.pool.clock()
    }

    pub(super) async fn publish(&self, topic: &str, message: &Bytes) -> Result<()> {
        self.shared.feed.publish(topic, message).await
    }

    pub(super) async fn subscribe(&self, topic: &str) -> Result<Subscription> {
        let subscription = self.shared.feed.subscribe(topic).await?;
        self.start_tasks();
        Ok(subscription)
    }

    fn start_tasks(&self) {
        let mut tasks = self.shared.tasks.lock();
        if tasks.is_empty() {
            let feed = &self.shared.feed;
            tasks.push(tokio::spawn(Arc::clone(feed).run()).abort_handle());
            tasks.push(tokio::spawn(notifications::listen(Arc::clone(feed))).abort_handle());
        }
    }

    fn limits(&self) -> &StateLimits {
        &self.shared.limits
    }

    fn cluster(&self) -> &str {
        &self.shared.pool.settings().name
    }

    async fn query(
        &self,
        query: &PostgresQuery,
        parameters: StatementParameters<'_>,
    ) -> Result<Vec<Row>> {
        self.shared.pool.query(query, parameters).await
    }

    fn column<'a, T: FromSql<'a>>(&self, row: &'a Row, index: usize) -> Result<T> {
        self.shared.pool.column(row, index)
    }

    /// The result of a function.
    fn only_column<'a, T: FromSql<'a>>(&self, rows: &'a [Row]) -> Result<T> {
        let row = rows.first();
        let row = row.ok_or_else(|| self.shared.pool.unavailable("a function has no result"))?;
        self.column(row, 0)
    }
}

/// The advisory lock of a key. All processes compute the same number.
fn lock_number(cluster: &str, kind: &[u8], key: &str) -> i64 {
    let digest = Sha256::new()
        .chain_update(cluster)
        // No name of a cluster contains it.
        .chain_update([0])
        .chain_update(kind)
        .chain_update([0])
        .chain_update(key)
        .finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first)
}

fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Rounded up, so that nothing expires too early.
fn time_to_live(ttl: Duration) -> i64 {
    let partial = i64::from(!ttl.subsec_nanos().is_multiple_of(1_000));
    microseconds(ttl).saturating_add(partial).min(MAX_TIME_TO_LIVE)
}

/// Converts a count for PostgreSQL, which has no unsigned numbers.
fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Versions and numbers start at 1, so a negative one never existed.
fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
