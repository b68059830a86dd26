//! Read-only databases: predefined queries on SQLite files and PostgreSQL servers.
//!
//! Nothing is opened before the first call. A caller's values are bound to parameters and never become part of a query.
//! The database itself enforces read-only access, in addition to the checks here.

pub mod address;
pub mod query;

mod error;
pub(crate) mod postgres;
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
pub(crate) use query::Rows;
use sqlite::SqlitePool;

/// Limits on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseLimits {
    /// Maximum number of connections; further calls wait.
    pub max_connections: usize,
    /// Maximum number of rows in a result.
    pub max_rows: usize,
    /// Maximum duration of a query.
    pub query_timeout: Duration,
}

impl Default for DatabaseLimits {
    fn default() -> Self {
        Self { max_connections: 4, max_rows: 100, query_timeout: Duration::from_secs(10) }
    }
}

/// A read-only database; clones share its connections.
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

/// Databases are equal if their addresses and limits are equal.
impl PartialEq for Database {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&self.inner, &other.inner);
        (&one.name, &one.address, &one.limits) == (&other.name, &other.address, &other.limits)
    }
}

impl Database {
    /// A database with this name. Nothing is opened yet.
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

    /// Its name in the configuration.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Its address.
    pub fn address(&self) -> &DatabaseAddress {
        &self.inner.address
    }

    /// Its limits.
    pub fn limits(&self) -> DatabaseLimits {
        self.inner.limits
    }

    /// Its file, if it is an SQLite database.
    pub fn file(&self) -> Option<&Path> {
        match &self.inner.address {
            DatabaseAddress::Sqlite(file) => Some(file),
            DatabaseAddress::Postgres(_) => None,
        }
    }

    /// Checks a query without connecting, against an existing file. Returns the reason why it cannot run.
    pub(crate) fn check_offline(&self, query: &Query) -> Option<String> {
        let file = self.file().filter(|file| file.is_file())?;
        match sqlite::check(file, &query.sql(&self.inner.address)) {
            Err(DatabaseError::QueryRejected(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Checks a query by letting the database prepare it. Nothing is run.
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
                done.map_err(|_| DatabaseError::TimedOut)?.map_err(|failure| self.located(failure))
            }
        }
    }

    /// The rows of a query with these values, as many as fit.
    pub(crate) async fn query(
        &self,
        query: &Query,
        values: Vec<Value>,
        max_bytes: usize,
    ) -> Result<Rows, DatabaseError> {
        let DatabaseLimits { max_rows: rows, query_timeout: time, .. } = self.inner.limits;
        let limits = ResultLimits { max_rows: rows, max_bytes, timeout: time };
        let sql = query.sql(&self.inner.address);
        self.rows(sql, values, limits).await
    }

    async fn rows(
        &self,
        sql: String,
        values: Vec<Value>,
        limits: ResultLimits,
    ) -> Result<Rows, DatabaseError> {
        match &self.inner.backend {
            Backend::Sqlite(files) => files.rows(sql, values, limits).await,
            Backend::Postgres(pool) => {
                let rows = postgres::rows(pool, &sql, &values, limits).await;
                rows.map_err(|error| self.located(error))
            }
        }
    }

    /// Adds the server and the database to an error, because PostgreSQL's connection errors do not name them.
    fn located(&self, error: DatabaseError) -> DatabaseError {
        match error {
            DatabaseError::Unavailable(reason) => {
                DatabaseError::Unavailable(format!("{}: {reason}", self.inner.address.redacted()))
            }
            other => other,
        }
    }
}

/// Limits on the size of a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultLimits {
    pub(crate) max_rows: usize,
    pub(crate) max_bytes: usize,
    pub(crate) timeout: Duration,
}
