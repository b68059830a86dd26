//! The thread that has the connection: takes work, writes what waits together in one commit, and looks
//! for messages of other processes while somebody listens.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::sync::OwnedSemaphorePermit;

use super::super::error::Problem;
use super::super::topics::Topics;
use super::super::{Result, StateError};
use super::messages::Feed;
use super::{Outcome, file};

/// The most writes of one commit. Every commit waits for the disk, so under load this is what makes the
/// difference.
const MOST_TOGETHER: usize = 64;

/// How often messages of other processes are looked for.
const POLLED_EVERY: Duration = Duration::from_millis(50);

/// Something to do, with its place in the queue.
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) place: OwnedSemaphorePermit,
}

pub(super) enum Work {
    /// Changes nothing and answers by itself.
    Read(Read),
    /// Is answered after the commit.
    Write(Write),
}

pub(super) type Read = Box<dyn FnOnce(&Connection, &mut Feed) + Send>;

/// Writes, if a transaction could be begun, and tells whether it went well; it is undone if not.
pub(super) type Write = Box<dyn FnOnce(Outcome<&Connection>, &Feed) -> (bool, Done) + Send>;

/// Answers, given whether the commit went well.
pub(super) type Done = Box<dyn FnOnce(Outcome<()>) + Send>;

/// Why something was not done.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    State(StateError),
    Sqlite(Arc<rusqlite::Error>),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl Failure {
    pub(super) fn at(self, path: &Arc<Path>) -> StateError {
        let error = match self {
            Self::State(error) => return error,
            Self::Sqlite(error) => error,
        };
        let why = error.to_string().into();
        let problem = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Problem::Damaged(why),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                Problem::Inaccessible(why)
            }
            Some(ErrorCode::DiskFull) => Problem::DiskFull(why),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Problem::Busy(why),
            _ => Problem::Other(why),
        };
        StateError::File { path: Arc::clone(path), problem }
    }
}

/// What the thread has.
pub(super) struct Worker {
    path: Arc<Path>,
    connection: Connection,
    jobs: Receiver<Job>,
    feed: Feed,
    polled: Instant,
    poll_failed: bool,
}

impl Worker {
    pub(super) fn open(path: Arc<Path>, jobs: Receiver<Job>, topics: Arc<Topics>) -> Result<Self> {
        let connection = file::open(&path).map_err(|failure| failure.at(&path))?;
        let feed = Feed::new(topics)?;
        Ok(Self { path, connection, jobs, feed, polled: Instant::now(), poll_failed: false })
    }

    /// Works until nobody is left who could ask for anything.
    pub(super) fn run(mut self) {
        let mut next = None;
        loop {
            let waited = match next.take() {
                Some(job) => Ok(job),
                None => self.wait(),
            };
            match waited {
                Ok(Job { work: Work::Read(read), place }) => {
                    read(&self.connection, &mut self.feed);
                    drop(place);
                }
                Ok(first) => next = self.write_together(first),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.poll_if_due();
        }
    }

    /// Sleeps for as long as there is nothing to do: without listeners nothing wakes the thread.
    fn wait(&self) -> std::result::Result<Job, RecvTimeoutError> {
        if self.feed.topics.listening() == 0 {
            return self.jobs.recv().map_err(|_| RecvTimeoutError::Disconnected);
        }
        self.jobs.recv_timeout(POLLED_EVERY.saturating_sub(self.polled.elapsed()))
    }

    fn poll_if_due(&mut self) {
        if self.feed.topics.listening() == 0 || self.polled.elapsed() < POLLED_EVERY {
            return;
        }
        let read = self.feed.poll(&self.connection);
        // Said once, not twenty times a second; what was not read now is read later.
        if let Err(failure) = &read
            && !self.poll_failed
        {
            let error = failure.clone().at(&self.path);
            tracing::warn!(%error, "messages of other processes cannot be read");
        }
        self.poll_failed = read.is_err();
        self.polled = Instant::now();
    }

    /// Commits a write together with those that wait behind it. Gives the first job that was not one.
    fn write_together(&mut self, first: Job) -> Option<Job> {
        let mut open = execute(&self.connection, "BEGIN IMMEDIATE");
        let (mut answers, mut next) = (Vec::new(), Some(first));
        while let Some(Job { work, place }) = next.take() {
            let write = match work {
                Work::Write(write) => write,
                read @ Work::Read(_) => {
                    next = Some(Job { work: read, place });
                    break;
                }
            };
            let (settled, done) = self.attempt(open, write);
            open = settled;
            answers.push((done, place));
            if open.is_err() || answers.len() >= MOST_TOGETHER {
                break;
            }
            next = self.jobs.try_recv().ok();
        }
        let committed = self.end(open);
        for (done, place) in answers {
            done(committed.clone());
            drop(place);
        }
        next
    }

    /// Does one write of several, or undoes all of it. Fails when the others are lost with it.
    fn attempt(&self, open: Outcome<()>, write: Write) -> (Outcome<()>, Done) {
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

    /// Commits, or lets nothing have happened: neither a half nor an open transaction stays behind.
    fn end(&self, open: Outcome<()>) -> Outcome<()> {
        let committed = open.and_then(|()| execute(&self.connection, "COMMIT"));
        if committed.is_err() && !self.connection.is_autocommit() {
            execute(&self.connection, "ROLLBACK")?;
        }
        committed
    }
}

/// Reads all of it at one moment, whatever other processes write meanwhile.
pub(super) fn at_one_moment<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Outcome<T>,
) -> Outcome<T> {
    let moment = connection.unchecked_transaction()?;
    work(&moment)
}

fn execute(connection: &Connection, sql: &str) -> Outcome<()> {
    connection.prepare_cached(sql)?.execute([])?;
    Ok(())
}
