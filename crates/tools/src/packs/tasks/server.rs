//! Tasks on a PostgreSQL server, which several machines may share.

use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::database::DatabaseError;
use crate::database::address::PostgresServer;
use crate::database::postgres::{PostgresLease, PostgresPool, contains_nul};
use crate::packs::tasks::database::{TaskListPage, TaskUpdate};
use crate::packs::tasks::error::StoreError;
use crate::packs::tasks::task::{Task, TaskStatus, new_id};

/// Maximum number of connections of one process.
const CONNECTIONS: usize = 4;

/// The advisory lock for creating tables and numbers; its key is specific to this program: "CrTs".
const LOCK: &str = "SELECT pg_advisory_xact_lock(1131566195)";

/// The migrations from one version to the next; the version is the number of applied ones. Never edit a released one:
/// add another.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE creole_tasks (
        -- The order of creation. It is given out under a lock, so that a number never appears behind a greater one, which
        -- keeps cursors true.
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        description TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'done', 'cancelled'))
    );
    CREATE INDEX creole_tasks_by_status ON creole_tasks (status, number);
"];

/// The tasks of one database.
#[derive(Debug)]
pub(crate) struct TaskServer {
    pool: PostgresPool,
    address: String,
    /// Set once the tables are known to exist.
    ready: OnceCell<()>,
}

type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

impl TaskServer {
    /// The tasks on this server. Nothing is connected yet.
    pub(crate) fn new(server: &PostgresServer) -> Self {
        let greeting =
            "SET statement_timeout = 10000; SET idle_in_transaction_session_timeout = 10000";
        let pool = PostgresPool::new(server, CONNECTIONS, greeting);
        Self { pool, address: server.display_address(), ready: OnceCell::new() }
    }

    pub(crate) async fn create(&self, description: &str) -> Result<Task, StoreError> {
        check(description)?;
        let id = new_id().map_err(StoreError::Randomness)?;
        let task = Task { id, description: description.to_owned(), status: TaskStatus::Pending };
        let lease = self.lease().await?;
        let work = async {
            lease.batch_execute(&format!("BEGIN; {LOCK}")).await?;
            let sql = "INSERT INTO creole_tasks (id, description, status) VALUES ($1, $2, $3)";
            lease.execute(sql, &[&task.id, &task.description, &task.status.name()]).await?;
            lease.batch_execute("COMMIT").await
        };
        let done = work.await;
        self.finish(lease, done).await?;
        Ok(task)
    }

    pub(crate) async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.query_one("SELECT id, description, status FROM creole_tasks WHERE id = $1", &[&id])
            .await
    }

    pub(crate) async fn page(
        &self,
        status: Option<TaskStatus>,
        after: i64,
        limit: usize,
    ) -> Result<TaskListPage, StoreError> {
        let expected = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let sql = "SELECT id, description, status, number FROM creole_tasks
                   WHERE number > $1 AND ($2::text IS NULL OR status = $2) ORDER BY number LIMIT $3";
        let mut rows =
            self.query_rows(sql, &[&after, &status.map(TaskStatus::name), &expected]).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let more_after = rows.last().filter(|_| more).map(|row| row.get(3));
        Ok(TaskListPage { tasks: rows.iter().map(read_task).collect(), more_after })
    }

    pub(crate) async fn update(
        &self,
        id: &str,
        update: &TaskUpdate,
    ) -> Result<Option<Task>, StoreError> {
        update.description.as_deref().map_or(Ok(()), check)?;
        let sql = "UPDATE creole_tasks SET status = coalesce($2, status), description = coalesce($3, description)
                   WHERE id = $1 RETURNING id, description, status";
        self.query_one(sql, &[&id, &update.status.map(TaskStatus::name), &update.description]).await
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<Option<Task>, StoreError> {
        let sql = "DELETE FROM creole_tasks WHERE id = $1 RETURNING id, description, status";
        self.query_one(sql, &[&id]).await
    }

    pub(crate) async fn ids(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let sql = "SELECT id FROM creole_tasks WHERE starts_with(id, $1) ORDER BY id COLLATE \"C\" LIMIT $2";
        let rows = self.query_rows(sql, &[&prefix, &limit]).await?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    async fn query_one(
        &self,
        sql: &str,
        given: Parameters<'_>,
    ) -> Result<Option<Task>, StoreError> {
        Ok(self.query_rows(sql, given).await?.first().map(read_task))
    }

    /// Runs one statement, which is atomic.
    async fn query_rows(&self, sql: &str, given: Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        let lease = self.lease().await?;
        let done = lease.query(sql, given).await;
        self.finish(lease, done).await
    }

    /// Releases the connection, with nothing left open on it.
    async fn finish<T>(
        &self,
        lease: PostgresLease,
        done: Result<T, tokio_postgres::Error>,
    ) -> Result<T, StoreError> {
        match done {
            Ok(done) => {
                lease.release();
                Ok(done)
            }
            Err(error) => {
                if lease.batch_execute("ROLLBACK").await.is_ok() {
                    lease.release();
                }
                Err(self.to_store_error(DatabaseError::postgres(&error)))
            }
        }
    }

    fn to_store_error(&self, error: DatabaseError) -> StoreError {
        StoreError::Server(self.address.clone(), error)
    }

    /// Leases a connection to a database with the tables.
    async fn lease(&self) -> Result<PostgresLease, StoreError> {
        self.ready.get_or_try_init(|| self.prepare()).await?;
        self.pool.lease().await.map_err(|error| self.to_store_error(error))
    }

    async fn prepare(&self) -> Result<(), StoreError> {
        let lease = self.pool.lease().await.map_err(|error| self.to_store_error(error))?;
        let done = migrate(&lease).await;
        let found = self.finish(lease, done).await?;
        match found > MIGRATIONS.len() {
            true => Err(StoreError::NewerServer {
                place: self.address.clone(),
                found,
                known: MIGRATIONS.len(),
            }),
            false => Ok(()),
        }
    }
}

/// Migrates the tables. Returns the version that they had or have now.
async fn migrate(client: &Client) -> Result<usize, tokio_postgres::Error> {
    client.batch_execute(&format!("BEGIN; {LOCK}")).await?;
    client
        .batch_execute(
            "CREATE TABLE IF NOT EXISTS creole_versions (part TEXT PRIMARY KEY, version INTEGER NOT NULL)",
        )
        .await?;
    let sql = "SELECT version FROM creole_versions WHERE part = 'tasks'";
    let found = client.query_opt(sql, &[]).await?;
    let found: i32 = found.map_or(0, |row| row.get(0));
    let found = usize::try_from(found).unwrap_or(usize::MAX);
    for migration in MIGRATIONS.iter().skip(found) {
        client.batch_execute(migration).await?;
    }
    if found < MIGRATIONS.len() {
        let version = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
        let sql = "INSERT INTO creole_versions (part, version) VALUES ('tasks', $1)
                   ON CONFLICT (part) DO UPDATE SET version = excluded.version";
        client.execute(sql, &[&version]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(found.max(MIGRATIONS.len()))
}

fn check(description: &str) -> Result<(), StoreError> {
    match contains_nul(&Value::from(description)) {
        true => Err(StoreError::NulCharacter),
        false => Ok(()),
    }
}

fn read_task(row: &Row) -> Task {
    // The table's CHECK allows no other status.
    let status = TaskStatus::from_name(row.get(2)).unwrap_or(TaskStatus::Pending);
    Task { id: row.get(0), description: row.get(1), status }
}
