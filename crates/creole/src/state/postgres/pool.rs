//! A small pool of connections for statements. It bounds the operations and their time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use super::super::store_clock::StoreClock;
use super::super::{Result, StateError};
use super::connect_attempts::ConnectAttempts;
use super::connection::{PostgresConnection, PostgresQuery, StatementParameters};
use super::failure::{ConnectFailure, StatementFailure};
use super::settings::CheckedSettings;
use crate::chain::BoxFuture;
use crate::sync::Mutex;

/// Maximum number of connections for statements.
const MAX_CONNECTIONS: usize = 4;
/// Maximum number of operations at a time; further ones fail at once.
const MAX_OPERATIONS: usize = 256;
/// How often a statement is sent that fails because of concurrent transactions.
const MAX_ATTEMPTS: usize = 5;

/// The connections to the server.
#[derive(Debug)]
pub(super) struct PostgresPool {
    settings: CheckedSettings,
    operations: Semaphore,
    connections: Semaphore,
    idle: Mutex<Vec<PostgresConnection>>,
    attempts: Mutex<ConnectAttempts>,
    /// Whether the address turned out to be that of a pooler, although the settings do not say so.
    is_pooler_found: AtomicBool,
    clock: StoreClock,
}

impl PostgresPool {
    pub(super) fn new(settings: CheckedSettings) -> Self {
        Self {
            settings,
            operations: Semaphore::new(MAX_OPERATIONS),
            connections: Semaphore::new(MAX_CONNECTIONS),
            idle: Mutex::default(),
            attempts: Mutex::default(),
            is_pooler_found: AtomicBool::new(false),
            clock: StoreClock::default(),
        }
    }

    pub(super) fn settings(&self) -> &CheckedSettings {
        &self.settings
    }

    /// The clock of the server.
    pub(super) fn clock(&self) -> &StoreClock {
        &self.clock
    }

    /// Whether the address is that of a pooler and no other one was given: then no notification arrives.
    pub(super) fn has_no_notifications(&self) -> bool {
        !self.settings.is_pooled && self.is_pooler_found.load(Ordering::Relaxed)
    }

    /// Opens the first connection.
    pub(super) async fn open_first(&self) -> std::result::Result<(), ConnectFailure> {
        let connection = self.connect(Instant::now() + self.settings.timeout).await?;
        self.idle.lock().push(connection);
        Ok(())
    }

    /// Runs a statement, which is a transaction of its own. The future is boxed: it holds a whole connection attempt,
    /// which the futures of other backends should not reserve room for.
    pub(super) fn query<'a>(
        &'a self,
        query: &'a PostgresQuery,
        parameters: StatementParameters<'a>,
    ) -> BoxFuture<'a, Result<Vec<Row>>> {
        Box::pin(self.run(query, parameters))
    }

    async fn run(
        &self,
        query: &PostgresQuery,
        parameters: StatementParameters<'_>,
    ) -> Result<Vec<Row>> {
        let Ok(_operation) = self.operations.try_acquire() else {
            return Err(self.unavailable(&format!("{MAX_OPERATIONS} operations wait already")));
        };
        let deadline = Instant::now() + self.settings.timeout;
        let mut attempt = 1;
        loop {
            let lease = self.lease(query, deadline).await?;
            let sent = timeout_at(deadline, lease.connection().run(query, parameters));
            let failure = match sent.await {
                Ok(Ok(rows)) => {
                    lease.release();
                    return Ok(rows);
                }
                Ok(Err(error)) => StatementFailure::of(&error),
                Err(_) => StatementFailure::Unanswered(self.no_answer()),
            };
            match failure {
                StatementFailure::Conflict(_) if attempt < MAX_ATTEMPTS => lease.release(),
                StatementFailure::Conflict(problem) | StatementFailure::Refused(problem) => {
                    lease.release();
                    return Err(self.unavailable(&problem));
                }
                // The next connection checks the schema again.
                StatementFailure::WrongSchema(problem) => return Err(self.unavailable(&problem)),
                StatementFailure::Unanswered(problem) => return Err(self.unknown(&problem)),
            }
            attempt += 1;
        }
    }

    /// The value of a column.
    pub(super) fn column<'a, T: FromSql<'a>>(&self, row: &'a Row, index: usize) -> Result<T> {
        row.try_get(index).map_err(|error| self.unknown(&error.to_string()))
    }

    /// The error when nothing was changed.
    pub(super) fn unavailable(&self, problem: &str) -> StateError {
        let store = self.settings.store.clone();
        StateError::Unavailable { store, problem: problem.into(), is_unknown: false }
    }

    /// The error when the change may have happened.
    fn unknown(&self, problem: &str) -> StateError {
        let store = self.settings.store.clone();
        StateError::Unavailable { store, problem: problem.into(), is_unknown: true }
    }

    fn no_answer(&self) -> String {
        format!("the server did not answer within {:?}", self.settings.timeout)
    }

    /// Waits for a connection that is ready for a statement.
    async fn lease(&self, query: &PostgresQuery, deadline: Instant) -> Result<ConnectionLease<'_>> {
        let permit = match timeout_at(deadline, self.connections.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(StateError::Stopped),
            Err(_) => {
                let problem = "all connections are in use; no connection became free within";
                let problem = format!("{problem} {:?}", self.settings.timeout);
                return Err(self.unavailable(&problem));
            }
        };
        let mut connection = match self.take_idle() {
            Some(connection) => connection,
            None => {
                let connected = self.connect(deadline).await;
                connected.map_err(|failure| self.unavailable(failure.problem()))?
            }
        };
        match timeout_at(deadline, connection.get_ready(query)).await {
            Ok(Ok(())) => Ok(ConnectionLease { pool: self, connection, _permit: permit }),
            Ok(Err(failure)) => Err(self.unavailable(failure.problem())),
            Err(_) => Err(self.unavailable(&self.no_answer())),
        }
    }

    fn take_idle(&self) -> Option<PostgresConnection> {
        let mut idle = self.idle.lock();
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }

    /// Opens a connection, unless an attempt has just failed.
    async fn connect(
        &self,
        deadline: Instant,
    ) -> std::result::Result<PostgresConnection, ConnectFailure> {
        let pause = self.attempts.lock().remaining_pause(Instant::now());
        if pause > Duration::ZERO {
            let problem =
                format!("the server could not be reached; the next attempt is in {pause:?}");
            return Err(ConnectFailure::Unreachable(problem));
        }
        let is_pooled = self.settings.is_pooled || self.is_pooler_found.load(Ordering::Relaxed);
        let opening = PostgresConnection::open(&self.settings, is_pooled, &self.clock);
        let opened = match timeout_at(deadline, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(ConnectFailure::Unreachable(self.no_answer())),
        };
        let store = &self.settings.store;
        match &opened {
            Ok(connection) => {
                if connection.is_pooled() && !is_pooled {
                    self.report_pooler();
                }
                if self.attempts.lock().record_success() {
                    tracing::info!(%store, "the state store is connected again");
                }
            }
            Err(failure) => {
                // Logged once, not with every attempt.
                if self.attempts.lock().record_failure(Instant::now()) {
                    let problem = failure.problem();
                    tracing::warn!(%store, problem, "cannot connect to the state store; trying again");
                }
            }
        }
        opened
    }

    /// Logged once.
    fn report_pooler(&self) {
        if !self.is_pooler_found.swap(true, Ordering::Relaxed) {
            let store = &self.settings.store;
            tracing::warn!(
                %store,
                "the state store is behind a connection pooler, which passes no notifications on; polling for \
                 messages. Set `listen_url` to the address of the server itself"
            );
        }
    }
}

/// A connection for one statement. It is closed unless it is released, because the statement may still run.
struct ConnectionLease<'a> {
    pool: &'a PostgresPool,
    connection: PostgresConnection,
    _permit: SemaphorePermit<'a>,
}

impl ConnectionLease<'_> {
    fn connection(&self) -> &PostgresConnection {
        &self.connection
    }

    /// Returns the connection to the pool.
    fn release(self) {
        self.pool.idle.lock().push(self.connection);
    }
}
