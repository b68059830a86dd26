//! The task file: opening, migration, reading and writing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rusqlite::{
    CachedStatement, Connection, ErrorCode, OpenFlags, OptionalExtension, Row, Transaction,
    TransactionBehavior, params,
};

use crate::packs::tasks::error::{StoreError, TaskFileError};
use crate::packs::tasks::task::{Task, TaskStatus, new_id};

/// Maximum time that a process waits for another one's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Identifies task files among SQLite databases: "CrTs".
const APPLICATION_ID: i32 = 0x4372_5473;

/// Minimum size of a non-empty database. SQLite treats a file of one byte as empty and would overwrite it.
const MIN_DATABASE_BYTES: u64 = 512;

/// The migrations from one version to the next; the version is the number of applied ones. Never edit a released one:
/// add another.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE tasks (
        -- The order of creation; AUTOINCREMENT never gives out a number twice, which keeps cursors true.
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        description TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('pending', 'in_progress', 'done', 'cancelled'))
    ) STRICT;
    CREATE INDEX tasks_by_status ON tasks (status, number);
"];

/// An open task file.
pub(crate) struct TaskDatabase {
    path: PathBuf,
    pub(crate) connection: Connection,
}

/// The new values of a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct TaskUpdate {
    pub(crate) status: Option<TaskStatus>,
    pub(crate) description: Option<String>,
}

/// Some tasks, and the number of the last one if there are more.
#[derive(Debug)]
pub(crate) struct TaskListPage {
    pub(crate) tasks: Vec<Task>,
    pub(crate) more_after: Option<i64>,
}

type Sqlite<T> = rusqlite::Result<T>;

impl TaskDatabase {
    /// Opens or creates a task file. A file of an unknown format is left unchanged.
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        if fs::metadata(path).is_ok_and(|file| (1..MIN_DATABASE_BYTES).contains(&file.len())) {
            return Err(StoreError::File(path.to_owned(), TaskFileError::Foreign));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error| StoreError::sqlite(path, error);
        let mut connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
        if let Some(failure) = check_is_ours(&mut connection).map_err(failed)? {
            return Err(StoreError::File(path.to_owned(), failure));
        }
        make_durable(&connection).map_err(failed)?;
        migrate(&mut connection).map_err(failed)?;
        Ok(Self { path: path.to_owned(), connection })
    }

    pub(crate) fn create(&mut self, description: &str) -> Result<Task, StoreError> {
        let id = new_id().map_err(StoreError::Randomness)?;
        let task = Task { id, description: description.to_owned(), status: TaskStatus::Pending };
        self.write(|transaction| {
            transaction
                .prepare_cached("INSERT INTO tasks (id, description, status) VALUES (?1, ?2, ?3)")?
                .execute(params![task.id, task.description, task.status.name()])
        })?;
        Ok(task)
    }

    pub(crate) fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT id, description, status FROM tasks WHERE id = ?1";
            connection.prepare_cached(sql)?.query_row([id], read_task).optional()
        })
    }

    /// At most `limit` tasks after a number, in order of creation.
    pub(crate) fn page(
        &self,
        status: Option<TaskStatus>,
        after: i64,
        limit: usize,
    ) -> Result<TaskListPage, StoreError> {
        let expected = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
        let mut rows = self.read(|connection| match status {
            None => read_numbered_tasks(
                connection.prepare_cached(
                    "SELECT id, description, status, number FROM tasks
                     WHERE number > ?1 ORDER BY number LIMIT ?2",
                )?,
                params![after, expected],
            ),
            Some(status) => read_numbered_tasks(
                connection.prepare_cached(
                    "SELECT id, description, status, number FROM tasks
                     WHERE status = ?3 AND number > ?1 ORDER BY number LIMIT ?2",
                )?,
                params![after, expected, status.name()],
            ),
        })?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let more_after = rows.last().filter(|_| more).map(|(number, _)| *number);
        Ok(TaskListPage { tasks: rows.into_iter().map(|(_, task)| task).collect(), more_after })
    }

    /// Updates a task and returns it, if it exists.
    pub(crate) fn update(
        &mut self,
        id: &str,
        update: &TaskUpdate,
    ) -> Result<Option<Task>, StoreError> {
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "UPDATE tasks SET status = coalesce(?2, status), description = coalesce(?3, description)
                     WHERE id = ?1 RETURNING id, description, status",
                )?
                .query_row(params![id, update.status.map(TaskStatus::name), update.description], read_task)
                .optional()
        })
    }

    /// Deletes a task and returns it, if it existed.
    pub(crate) fn delete(&mut self, id: &str) -> Result<Option<Task>, StoreError> {
        self.write(|transaction| {
            let sql = "DELETE FROM tasks WHERE id = ?1 RETURNING id, description, status";
            transaction.prepare_cached(sql)?.query_row([id], read_task).optional()
        })
    }

    /// The ids that begin with `prefix`.
    pub(crate) fn ids(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3";
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let end = format!("{prefix}{}", char::MAX);
            let mut statement = connection.prepare_cached(sql)?;
            statement.query_map(params![prefix, end, limit], |row| row.get(0))?.collect()
        })
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Sqlite<T>) -> Result<T, StoreError> {
        work(&self.connection).map_err(|error| StoreError::sqlite(&self.path, error))
    }

    /// Takes the lock first, so that nothing changes between reading and writing.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Sqlite<T>,
    ) -> Result<T, StoreError> {
        let written = in_immediate_transaction(&mut self.connection, work);
        written.map_err(|error| StoreError::sqlite(&self.path, error))
    }
}

fn in_immediate_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Transaction<'_>) -> Sqlite<T>,
) -> Sqlite<T> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// The reason why a file must not be modified. The check only reads, in one transaction, because another process may be
/// creating the file.
fn check_is_ours(connection: &mut Connection) -> Sqlite<Option<TaskFileError>> {
    let moment = connection.transaction()?;
    let number = |pragma| moment.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = moment.query_row(count, [], |row| row.get(0))?;
    let (application, version) = (number("application_id")?, number("user_version")?);
    let is_new = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION_ID && !is_new {
        return Ok(Some(TaskFileError::Foreign));
    }
    let (found, known) = (usize::try_from(version).unwrap_or(usize::MAX), MIGRATIONS.len());
    Ok((found > known).then_some(TaskFileError::Newer { found, known }))
}

/// Acknowledged writes survive a crash and a loss of power, and readers do not wait for writers.
fn make_durable(connection: &Connection) -> Sqlite<()> {
    // SQLite does not wait while another process changes the journal mode, so this retries.
    retry_while_busy(|| connection.pragma_update(None, "journal_mode", "WAL"))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a plain fsync does not reach the disk.
    connection.pragma_update(None, "fullfsync", true)
}

fn migrate(connection: &mut Connection) -> Sqlite<()> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))
    };
    let applied = |version| usize::try_from(version).unwrap_or(usize::MAX);
    if applied(version(connection)?) >= MIGRATIONS.len() {
        return Ok(());
    }
    in_immediate_transaction(connection, |transaction| {
        // Another process may have migrated the file meanwhile.
        let applied = applied(version(transaction)?);
        for migration in MIGRATIONS.iter().skip(applied) {
            transaction.execute_batch(migration)?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        let newest = i32::try_from(MIGRATIONS.len().max(applied)).unwrap_or(i32::MAX);
        transaction.pragma_update(None, "user_version", newest)
    })
}

fn retry_while_busy<T>(mut attempt: impl FnMut() -> Sqlite<T>) -> Sqlite<T> {
    let end = Instant::now() + BUSY_TIMEOUT;
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < end => {
                thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn read_numbered_tasks(
    mut statement: CachedStatement<'_>,
    parameters: impl rusqlite::Params,
) -> Sqlite<Vec<(i64, Task)>> {
    statement.query_map(parameters, |row| Ok((row.get(3)?, read_task(row)?)))?.collect()
}

fn read_task(row: &Row<'_>) -> Sqlite<Task> {
    let status = row.get_ref(2)?.as_str()?;
    // The table's CHECK allows no other status.
    let status = TaskStatus::from_name(status).ok_or_else(|| {
        rusqlite::Error::InvalidColumnType(2, "status".to_owned(), rusqlite::types::Type::Text)
    })?;
    Ok(Task { id: row.get(0)?, description: row.get(1)?, status })
}
