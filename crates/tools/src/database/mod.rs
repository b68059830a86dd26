//! Databases that are read: SQLite files and PostgreSQL servers, by queries that were written before.
//!
//! Nothing is opened before the first call. What a caller gives is bound to a parameter and never becomes part of a query;
//! that nothing is changed is the database's own promise and not only ours.

pub mod address;
pub mod query;

mod encrypted;
mod error;
pub(crate) mod postgres;
mod rows;
mod sqlite;
mod tables;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use address::Address;
pub(crate) use error::Trouble;
use postgres::Pool;
use query::Query;
pub(crate) use rows::Rows;
use sqlite::Files;

/// How much is read at once, and by how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there are at most; further calls wait.
    pub connections: usize,
    /// How many rows one answer has at most.
    pub rows: usize,
    /// How long one query may take.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 4, rows: 100, time: Duration::from_secs(10) }
    }
}

/// A database that is read; clones share its connections.
#[derive(Clone, Debug)]
pub struct Database {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    address: Address,
    limits: Limits,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Sqlite(Files),
    Postgres(Box<Pool>),
}

/// Databases are the same if they are at the same place, with the same limits.
impl PartialEq for Database {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (&self.shared, &other.shared);
        (&one.name, &one.address, &one.limits) == (&other.name, &other.address, &other.limits)
    }
}

impl Database {
    /// A database of this name. Nothing is opened yet.
    pub fn new(name: &str, address: Address, limits: Limits) -> Self {
        let backend = match &address {
            Address::Sqlite(file) => Backend::Sqlite(Files::new(file, limits.connections)),
            Address::Postgres(server) => Backend::Postgres(Box::new(Pool::new(
                server,
                limits.connections,
                "SET default_transaction_read_only = on",
            ))),
        };
        let name = name.to_owned();
        Self { shared: Arc::new(Shared { name, address, limits, backend }) }
    }

    /// The name that the configuration knows it by.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// How much is read at once.
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// The file, if it is one.
    pub fn file(&self) -> Option<&Path> {
        match &self.shared.address {
            Address::Sqlite(file) => Some(file),
            Address::Postgres(_) => None,
        }
    }

    /// Why a query cannot be asked, as far as it can be told without connecting: of a file that is there.
    pub(crate) fn objection(&self, query: &Query) -> Option<String> {
        let file = self.file().filter(|file| file.is_file())?;
        match sqlite::check(file, &query.sql(&self.shared.address)) {
            Err(Trouble::Refused(why)) => Some(why),
            _ => None,
        }
    }

    /// Why a query cannot be asked, after the database was asked to prepare it. Nothing is run.
    pub(crate) async fn attempt(&self, query: &Query) -> Result<(), Trouble> {
        let sql = query.sql(&self.shared.address);
        match &self.shared.backend {
            Backend::Sqlite(_) => {
                let file = self.file().map(Path::to_owned).unwrap_or_default();
                let checked = tokio::task::spawn_blocking(move || sqlite::check(&file, &sql)).await;
                checked.map_err(|error| Trouble::Unavailable(error.to_string()))?
            }
            Backend::Postgres(pool) => {
                let prepared = postgres::prepare(pool, &sql);
                let time = self.shared.limits.time;
                let done = tokio::time::timeout(time, prepared).await;
                done.map_err(|_| Trouble::Late)?.map_err(|trouble| self.located(trouble))
            }
        }
    }

    /// The rows of a query with these values, as many as fit.
    pub(crate) async fn query(
        &self,
        query: &Query,
        values: Vec<Value>,
        most_bytes: usize,
    ) -> Result<Rows, Trouble> {
        let Limits { rows, time, .. } = self.shared.limits;
        let room = Room { rows, bytes: most_bytes, time };
        let sql = query.sql(&self.shared.address);
        self.rows(sql, values, room).await
    }

    async fn rows(&self, sql: String, values: Vec<Value>, room: Room) -> Result<Rows, Trouble> {
        match &self.shared.backend {
            Backend::Sqlite(files) => files.rows(sql, values, room).await,
            Backend::Postgres(pool) => {
                let rows = postgres::rows(pool, &sql, &values, room).await;
                rows.map_err(|trouble| self.located(trouble))
            }
        }
    }

    /// The same with the server and the database in it: what PostgreSQL says of a connection does not name them.
    fn located(&self, trouble: Trouble) -> Trouble {
        match trouble {
            Trouble::Unavailable(why) => {
                Trouble::Unavailable(format!("{}: {why}", self.shared.address.shown()))
            }
            other => other,
        }
    }
}

/// How much room an answer has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}
