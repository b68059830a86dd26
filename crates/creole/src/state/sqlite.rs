//! A state in an SQLite file. One thread owns the connection; operations send it jobs and wait for the result, so the
//! runtime's threads never wait for a disk.

mod capacity;
mod entries;
mod failure;
mod file;
mod logs;
mod messages;
mod worker;

#[cfg(test)]
mod file_tests;
#[cfg(test)]
mod process_tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use super::topics::{Subscription, Topics};
use super::{Condition, LogRetention, Namespace, Result, StateError, StateLimits, StoredEntry};
use entries::PendingWrite;
use failure::SqliteFailure;
use worker::{CommitCallback, JobKind, SqliteWorker, WorkerJob};

/// Maximum number of queued jobs; further operations wait for a slot.
const MAX_QUEUED_JOBS: usize = 256;

/// A handle to the thread, which ends with the last handle.
#[derive(Clone, Debug)]
pub(super) struct SqliteState {
    shared: Arc<SqliteShared>,
}

#[derive(Debug)]
struct SqliteShared {
    path: Arc<Path>,
    limits: StateLimits,
    jobs: mpsc::Sender<WorkerJob>,
    /// Bounds the channel without ever blocking the sender.
    queue_slots: Arc<Semaphore>,
}

impl SqliteState {
    pub(super) async fn open(path: PathBuf, limits: StateLimits) -> Result<Self> {
        let path: Arc<Path> = path.into();
        let (jobs, waiting) = mpsc::channel();
        let (ready, opened) = oneshot::channel();
        let topics = Arc::new(Topics::new(limits));
        let file = Arc::clone(&path);
        let life = move || match SqliteWorker::open(file, waiting, topics) {
            Ok(worker) => {
                // The caller may have stopped waiting, which needs no action.
                let _ = ready.send(Ok(()));
                worker.run();
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        };
        let thread = std::thread::Builder::new().name("creole-state".to_owned());
        thread.spawn(life).map_err(|_| StateError::Stopped)?;
        opened.await.map_err(|_| StateError::Stopped)??;
        let permits = Arc::new(Semaphore::new(MAX_QUEUED_JOBS));
        Ok(Self { shared: Arc::new(SqliteShared { path, limits, jobs, queue_slots: permits }) })
    }

    pub(super) async fn get(
        &self,
        space: Namespace,
        key: &str,
        now: Duration,
    ) -> Result<Option<StoredEntry>> {
        let (key, now) = (key.to_owned(), milliseconds(now));
        self.read(move |connection| entries::get(connection, space, &key, now)).await
    }

    pub(super) async fn write(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        value: Bytes,
        ttl: Option<Duration>,
        now: Duration,
    ) -> Result<Option<u64>> {
        let (limits, now) = (self.shared.limits, milliseconds(now));
        let expires = ttl.map(|ttl| expiry_time(now, ttl));
        let writing = PendingWrite { space, key: key.to_owned(), condition, value, expires };
        self.change(move |connection| entries::write(connection, &writing, now, &limits)).await
    }

    pub(super) async fn touch(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
        now: Duration,
    ) -> Result<bool> {
        let (key, now) = (key.to_owned(), milliseconds(now));
        let expires = ttl.map(|ttl| expiry_time(now, ttl));
        self.change(move |connection| {
            entries::touch(connection, (space, &key), condition, now, expires)
        })
        .await
    }

    pub(super) async fn remove(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        now: Duration,
    ) -> Result<bool> {
        let (key, now) = (key.to_owned(), milliseconds(now));
        self.change(move |connection| entries::remove(connection, (space, &key), condition, now))
            .await
    }

    pub(super) async fn append(
        &self,
        log: &str,
        entry: Bytes,
        keep: LogRetention,
        now: Duration,
    ) -> Result<u64> {
        let (log, limits, now) = (log.to_owned(), self.shared.limits, milliseconds(now));
        let expires = expiry_time(now, keep.ttl);
        self.change(move |connection| {
            logs::append(connection, &log, &entry, keep.entries, (now, expires), &limits)
        })
        .await
    }

    pub(super) async fn read_after(
        &self,
        log: &str,
        after: u64,
        max: usize,
        now: Duration,
    ) -> Result<Vec<(u64, Bytes)>> {
        let (log, now) = (log.to_owned(), milliseconds(now));
        self.read(move |connection| logs::read_after(connection, &log, after, max, now)).await
    }

    pub(super) async fn remove_log(&self, log: &str, now: Duration) -> Result<bool> {
        let (log, now) = (log.to_owned(), milliseconds(now));
        self.change(move |connection| logs::remove(connection, &log, now)).await
    }

    pub(super) async fn publish(&self, topic: &str, message: Bytes, now: Duration) -> Result<()> {
        let (topic, now) = (topic.to_owned(), milliseconds(now));
        self.run_on_worker(|answer| {
            JobKind::Write(Box::new(move |connection, feed| {
                let written = connection.and_then(|connection| {
                    messages::publish(connection, feed.origin, &topic, &message, now)
                });
                let topics = Arc::clone(&feed.topics);
                let is_done = written.is_ok();
                let done: CommitCallback = Box::new(move |committed| {
                    let result = committed.and(written);
                    if result.is_ok() {
                        topics.publish(&topic, &message);
                    }
                    answer(result);
                });
                (is_done, done)
            }))
        })
        .await
    }

    pub(super) async fn subscribe(&self, topic: &str) -> Result<Subscription> {
        let topic = topic.to_owned();
        self.run_on_worker(|answer| {
            JobKind::Read(Box::new(move |connection, feed| {
                // Earlier messages are delivered to earlier subscribers only.
                let caught_up = feed.poll(connection);
                answer(caught_up.and_then(|()| Ok(feed.topics.subscribe(&topic)?)));
            }))
        })
        .await
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> SqliteResult<T> + Send + 'static,
    ) -> Result<T> {
        self.run_on_worker(|answer| {
            JobKind::Read(Box::new(move |connection, _| {
                answer(in_read_transaction(connection, work))
            }))
        })
        .await
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> SqliteResult<T> + Send + 'static,
    ) -> Result<T> {
        self.run_on_worker(|answer| {
            JobKind::Write(Box::new(move |connection, _| {
                let written = connection.and_then(work);
                let is_done = written.is_ok();
                let done: CommitCallback =
                    Box::new(move |committed| answer(committed.and(written)));
                (is_done, done)
            }))
        })
        .await
    }

    /// Sends a job to the thread and waits for its result.
    async fn run_on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(Box<dyn FnOnce(SqliteResult<T>) + Send>) -> JobKind,
    ) -> Result<T> {
        let permits = Arc::clone(&self.shared.queue_slots);
        let permit = permits.acquire_owned().await.map_err(|_| StateError::Stopped)?;
        let (sender, answer) = oneshot::channel();
        let work = work(Box::new(move |result| {
            // The caller may have stopped waiting.
            let _ = sender.send(result);
        }));
        let job = WorkerJob { work, permit };
        self.shared.jobs.send(job).map_err(|_| StateError::Stopped)?;
        let result = answer.await.map_err(|_| StateError::Stopped)?;
        result.map_err(|failure| failure.into_state_error(&self.shared.path))
    }
}

type SqliteResult<T> = std::result::Result<T, SqliteFailure>;

/// Rounded up, so that nothing expires too early.
fn expiry_time(now: i64, ttl: Duration) -> i64 {
    let partial = i64::from(!ttl.subsec_nanos().is_multiple_of(1_000_000));
    now.saturating_add(milliseconds(ttl)).saturating_add(partial)
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Reads in one transaction, whatever other processes write meanwhile.
fn in_read_transaction<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> SqliteResult<T>,
) -> SqliteResult<T> {
    let moment = connection.unchecked_transaction()?;
    work(&moment)
}

/// Converts a count for SQLite, which has no unsigned numbers.
fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
