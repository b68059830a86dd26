//! Databases that are read: SQLite files and PostgreSQL servers, by queries that were written before.
//!
//! Nothing is opened before the first call. What a caller gives is bound to a parameter and never becomes part of a query;
//! that nothing is changed is the database's own promise and not only ours.

pub mod address;
pub mod query;

mod error;
pub(crate) mod postgres;
mod rows;
mod sqlite;
mod tables;
mod tls;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use address::DatabaseAddress;
pub(crate) use error::DatabaseError;
use postgres::PostgresPool;
use query::Query;
pub(crate) use rows::Rows;
use sqlite::SqlitePool;

/// How much is read at once, and by how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseLimits {
    /// How many connections there are at most; further calls wait.
    pub max_connections: usize,
    /// How many rows one answer has at most.
    pub max_rows: usize,
    /// How long one query may take.
    pub query_timeout: Duration,
}

impl Default for DatabaseLimits {
    fn default() -> Self {
        Self { max_connections: 4, max_rows: 100, query_timeout: Duration::from_secs(10) }
    }
}

/// A database that is read; clones share its connections.
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<DatabaseInner>,
}

#[derive(Debug)]
struct DatabaseInner {
    name: String,
    address: DatabaseAddress,
    limits: DatabaseLimits,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Sqlite(SqlitePool),
    Postgres(Box<PostgresPool>),
}

/// Databases are the same if they are at the same place, with the same limits.
impl PartialEq for Database {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&self.inner, &other.inner);
        (&one.name, &one.address, &one.limits) == (&other.name, &other.address, &other.limits)
    }
}

impl Database {
    /// A database of this name. Nothing is opened yet.
    pub fn new(name: &str, address: DatabaseAddress, limits: DatabaseLimits) -> Self {
        let backend = match &address {
            DatabaseAddress::Sqlite(file) => {
                Backend::Sqlite(SqlitePool::new(file, limits.max_connections))
            }
            DatabaseAddress::Postgres(server) => Backend::Postgres(Box::new(PostgresPool::new(
                server,
                limits.max_connections,
                "SET default_transaction_read_only = on",
            ))),
        };
        let name = name.to_owned();
        Self { inner: Arc::new(DatabaseInner { name, address, limits, backend }) }
    }

    /// The name that the configuration knows it by.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Where it is.
    pub fn address(&self) -> &DatabaseAddress {
        &self.inner.address
    }

    /// How much is read at once.
    pub fn limits(&self) -> DatabaseLimits {
        self.inner.limits
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.inner.address {
            DatabaseAddress::Sqlite(file) => Some(file),
            DatabaseAddress::Postgres(_) => None,
        }
    }

    /// Why a query cannot be asked, as far as it can be told without connecting: of a file that is there.
    pub(crate) fn check_offline(&self, query: &Query) -> Option<String> {
        let file = self.file().filter(|file| file.is_file())?;
        match sqlite::check(file, &query.sql(&self.inner.address)) {
            Err(DatabaseError::QueryRejected(why)) => Some(why),
            _ => None,
        }
    }

    /// Why a query cannot be asked, after the database was asked to prepare it. Nothing is run.
    pub(crate) async fn check_query(&self, query: &Query) -> Result<(), DatabaseError> {
        let sql = query.sql(&self.inner.address);
        match &self.inner.backend {
            Backend::Sqlite(_) => {
                let file = self.file().map(Path::to_owned).unwrap_or_default();
                let checked = tokio::task::spawn_blocking(move || sqlite::check(&file, &sql)).await;
                checked.map_err(|error| DatabaseError::Unavailable(error.to_string()))?
            }
            Backend::Postgres(pool) => {
                let prepared = postgres::prepare(pool, &sql);
                let time = self.inner.limits.query_timeout;
                let done = tokio::time::timeout(time, prepared).await;
                done.map_err(|_| DatabaseError::TimedOut)?.map_err(|trouble| self.located(trouble))
            }
        }
    }

    /// The rows of a query with these values, as many as fit.
    pub(crate) async fn query(
        &self,
        query: &Query,
        values: Vec<Value>,
        most_bytes: usize,
    ) -> Result<Rows, DatabaseError> {
        let DatabaseLimits { max_rows: rows, query_timeout: time, .. } = self.inner.limits;
        let room = ResultLimits { max_rows: rows, max_bytes: most_bytes, timeout: time };
        let sql = query.sql(&self.inner.address);
        self.rows(sql, values, room).await
    }

    async fn rows(
        &self,
        sql: String,
        values: Vec<Value>,
        room: ResultLimits,
    ) -> Result<Rows, DatabaseError> {
        match &self.inner.backend {
            Backend::Sqlite(files) => files.rows(sql, values, room).await,
            Backend::Postgres(pool) => {
                let rows = postgres::rows(pool, &sql, &values, room).await;
                rows.map_err(|trouble| self.located(trouble))
            }
        }
    }

    /// The same with the server and the database in it: what PostgreSQL says of a connection does not name them.
    fn located(&self, trouble: DatabaseError) -> DatabaseError {
        match trouble {
            DatabaseError::Unavailable(why) => {
                DatabaseError::Unavailable(format!("{}: {why}", self.inner.address.redacted()))
            }
            other => other,
        }
    }
}

/// How much room an answer has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultLimits {
    pub(crate) max_rows: usize,
    pub(crate) max_bytes: usize,
    pub(crate) timeout: Duration,
}
