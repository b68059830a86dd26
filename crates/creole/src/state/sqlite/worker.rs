//! The thread that owns the connection: runs jobs, commits queued writes together, and polls for messages of other
//! processes while there are subscribers.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::OwnedSemaphorePermit;

use super::super::Result;
use super::super::topics::Topics;
use super::messages::MessageFeed;
use super::{SqliteResult, file};

/// Maximum number of writes per commit. Every commit waits for the disk, so under load this determines the throughput.
const MAX_BATCH: usize = 64;

/// The interval of polls for messages of other processes.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A job with its slot in the queue.
pub(super) struct WorkerJob {
    pub(super) work: JobKind,
    pub(super) permit: OwnedSemaphorePermit,
}

pub(super) enum JobKind {
    /// Changes nothing and sends its own result.
    Read(ReadJob),
    /// Sends its result after the commit.
    Write(WriteJob),
}

pub(super) type ReadJob = Box<dyn FnOnce(&Connection, &mut MessageFeed) + Send>;

/// Writes, if a transaction could be started, and returns whether it succeeded; otherwise it is rolled back.
pub(super) type WriteJob =
    Box<dyn FnOnce(SqliteResult<&Connection>, &MessageFeed) -> (bool, CommitCallback) + Send>;

/// Sends the result, given the result of the commit.
pub(super) type CommitCallback = Box<dyn FnOnce(SqliteResult<()>) + Send>;

/// The state of the thread.
pub(super) struct SqliteWorker {
    path: Arc<Path>,
    connection: Connection,
    jobs: Receiver<WorkerJob>,
    feed: MessageFeed,
    last_poll: Instant,
    poll_failed: bool,
}

impl SqliteWorker {
    pub(super) fn open(
        path: Arc<Path>,
        jobs: Receiver<WorkerJob>,
        topics: Arc<Topics>,
    ) -> Result<Self> {
        let connection = file::open(&path).map_err(|failure| failure.into_state_error(&path))?;
        let feed = MessageFeed::new(topics)?;
        Ok(Self { path, connection, jobs, feed, last_poll: Instant::now(), poll_failed: false })
    }

    /// Runs until the last handle is dropped.
    pub(super) fn run(mut self) {
        let mut next = None;
        loop {
            let waited = match next.take() {
                Some(job) => Ok(job),
                None => self.wait(),
            };
            match waited {
                Ok(WorkerJob { work: JobKind::Read(read), permit }) => {
                    read(&self.connection, &mut self.feed);
                    drop(permit);
                }
                Ok(first) => next = self.write_batch(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.poll_if_due();
        }
    }

    /// Sleeps while there is nothing to do: without subscribers nothing wakes the thread.
    fn wait(&self) -> std::result::Result<WorkerJob, RecvTimeoutError> {
        if self.feed.topics.listener_count() == 0 {
            return self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        self.jobs.recv_timeout(POLL_INTERVAL.saturating_sub(self.last_poll.elapsed()))
    }

    fn poll_if_due(&mut self) {
        if self.feed.topics.listener_count() == 0 || self.last_poll.elapsed() < POLL_INTERVAL {
            return;
        }
        let read = self.feed.poll(&self.connection);
        // Logged once, not twenty times a second; unread messages are read later.
        if let Err(failure) = &read
            && !self.poll_failed
        {
            let error = failure.clone().into_state_error(&self.path);
            tracing::warn!(%error, "cannot read the messages of other replicas");
        }
        self.poll_failed = read.is_err();
        self.last_poll = Instant::now();
    }

    /// Commits a write together with the queued writes behind it. Returns the first job that is not a write.
    fn write_batch(&mut self, first: WorkerJob) -> Option<WorkerJob> {
        let mut open = execute(&self.connection, "BEGIN IMMEDIATE");
        let (mut answers, mut next) = (Vec::new(), Some(first));
        while let Some(WorkerJob { work, permit }) = next.take() {
            let write = match work {
                JobKind::Write(write) => write,
                read @ JobKind::Read(_) => {
                    next = Some(WorkerJob { work: read, permit });
                    break;
                }
            };
            let (settled, done) = self.attempt(open, write);
            open = settled;
            answers.push((done, permit));
            if open.is_err() || answers.len() >= MAX_BATCH {
                break;
            }
            next = self.jobs.try_recv().ok();
        }
        let committed = self.commit_or_roll_back(open);
        for (done, permit) in answers {
            done(committed.clone());
            drop(permit);
        }
        next
    }

    /// Runs one write of a batch, or undoes it completely. Fails when the others are lost with it.
    fn attempt(
        &self,
        open: SqliteResult<()>,
        write: WriteJob,
    ) -> (SqliteResult<()>, CommitCallback) {
        let saved = open.and_then(|()| execute(&self.connection, "SAVEPOINT one"));
        let (is_done, done) = write(saved.clone().map(|()| &self.connection), &self.feed);
        let settled = saved.and_then(|()| {
            if !is_done {
                execute(&self.connection, "ROLLBACK TO one")?;
            }
            execute(&self.connection, "RELEASE one")
        });
        (settled, done)
    }

    /// Commits or rolls back: no partial or open transaction remains.
    fn commit_or_roll_back(&self, open: SqliteResult<()>) -> SqliteResult<()> {
        let committed = open.and_then(|()| execute(&self.connection, "COMMIT"));
        if committed.is_err() && !self.connection.is_autocommit() {
            execute(&self.connection, "ROLLBACK")?;
        }
        committed
    }
}

fn execute(connection: &Connection, sql: &str) -> SqliteResult<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
