//! SQLite files, read through a small pool of read-only connections.

use creole::internal::sync::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value as Bound, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::query::{Rows, quote_json, to_postgres_hex};
use super::{DatabaseError, ResultLimits};

/// Maximum time that a read waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of query steps between two checks of the deadline.
const PROGRESS_STEPS: i32 = 1000;
/// Maximum size of a single value, in bytes.
const MAX_VALUE_BYTES: i32 = 64 << 20;

/// The pool of connections to one file.
#[derive(Debug)]
pub(super) struct SqlitePool {
    file: PathBuf,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

/// Interrupts the query of a cancelled call.
struct InterruptOnDrop(Arc<AtomicBool>);

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl SqlitePool {
    pub(super) fn new(file: &Path, connections: usize) -> Self {
        let permits = Arc::new(Semaphore::new(connections));
        Self { file: file.to_owned(), permits, idle: Arc::default() }
    }

    pub(super) async fn rows(
        &self,
        sql: String,
        values: Vec<Value>,
        limits: ResultLimits,
    ) -> Result<Rows, DatabaseError> {
        let closed = |_| DatabaseError::Unavailable("the connection is closed".to_owned());
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(closed)?;
        let (file, idle) = (self.file.clone(), Arc::clone(&self.idle));
        let stop = InterruptOnDrop(Arc::default());
        let stopped = Arc::clone(&stop.0);
        let work = tokio::task::spawn_blocking(move || {
            // The permit is released with the connection, even if the call was cancelled.
            let _permit = permit;
            let kept = idle.lock().pop();
            let mut connection = kept.map_or_else(|| open(&file), Ok)?;
            let rows = read(&mut connection, &sql, &values, limits, stopped);
            if !matches!(rows, Err(DatabaseError::Unavailable(_))) {
                idle.lock().push(connection);
            }
            rows
        });
        let done = work.await;
        drop(stop);
        done.unwrap_or_else(|_| {
            Err(DatabaseError::Unavailable("the reader thread panicked".to_owned()))
        })
    }
}

/// Checks whether a query can run on a file.
pub(super) fn check(file: &Path, sql: &str) -> Result<(), DatabaseError> {
    let connection = open(file)?;
    let tried = connection.prepare(&wrap_in_select(sql, 1)).map(drop);
    tried.map_err(|error| DatabaseError::sqlite(&error))
}

/// Wraps the query in another one, inside which it must be a single reading statement.
fn wrap_in_select(sql: &str, max: usize) -> String {
    format!("SELECT * FROM (\n{sql}\n) AS query LIMIT {max}")
}

/// Opens a file read-only, with every restriction that SQLite offers.
fn open(file: &Path) -> Result<Connection, DatabaseError> {
    let failed = |error: rusqlite::Error| DatabaseError::sqlite(&error);
    // Without the URI flag, a file name has no special meaning.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        connection.set_db_config(config, value).map_err(failed)?;
    }
    for (limit, value) in
        [(Limit::SQLITE_LIMIT_ATTACHED, 0), (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)]
    {
        connection.set_limit(limit, value).map_err(failed)?;
    }
    connection.authorizer(Some(authorize)).map_err(failed)?;
    Ok(connection)
}

/// Allows reading, and denies other files, settings and external code.
fn authorize(context: AuthContext<'_>) -> Authorization {
    let allowed = match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            !function_name.eq_ignore_ascii_case("load_extension")
        }
        AuthAction::Pragma { pragma_name, .. } => pragma_name.eq_ignore_ascii_case("table_info"),
        _ => false,
    };
    if allowed { Authorization::Allow } else { Authorization::Deny }
}

fn read(
    connection: &mut Connection,
    sql: &str,
    values: &[Value],
    limits: ResultLimits,
    stopped: Arc<AtomicBool>,
) -> Result<Rows, DatabaseError> {
    let failed = |error: rusqlite::Error| DatabaseError::sqlite(&error);
    let end = Instant::now() + limits.timeout;
    let over = move || stopped.load(Ordering::Relaxed) || Instant::now() >= end;
    connection.progress_handler(PROGRESS_STEPS, Some(over)).map_err(failed)?;
    let rows = collect(connection, sql, values, limits);
    connection.progress_handler(0, None::<fn() -> bool>).map_err(failed)?;
    rows
}

fn collect(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    limits: ResultLimits,
) -> Result<Rows, DatabaseError> {
    let failed = |error: rusqlite::Error| DatabaseError::sqlite(&error);
    let mut statement =
        connection.prepare_cached(&wrap_in_select(sql, limits.max_rows + 1)).map_err(failed)?;
    let names: Vec<String> = statement.column_names().map(quote_json).collect();
    let mut found =
        statement.query(params_from_iter(values.iter().map(bind_value))).map_err(failed)?;
    let (mut rows, mut bytes) = (Rows::default(), 0);
    while let Some(row) = found.next().map_err(failed)? {
        if rows.rows.len() == limits.max_rows {
            rows.has_more = true;
            break;
        }
        let text = row_to_json(row, &names, limits.max_bytes).map_err(failed)?;
        bytes += text.len();
        if bytes > limits.max_bytes {
            if rows.rows.is_empty() {
                return Err(DatabaseError::TooLarge(limits.max_bytes));
            }
            rows.has_more = true;
            break;
        }
        rows.rows.push(text);
    }
    Ok(rows)
}

/// Converts a value for SQLite. Arrays and objects become JSON text, which `json_each` reads.
fn bind_value(value: &Value) -> Bound {
    match value {
        Value::Null => Bound::Null,
        Value::Bool(yes) => Bound::Integer(i64::from(*yes)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Bound::Integer(whole),
            // JSON Schema accepts 5.0 as an integer.
            (None, Some(real)) if real.fract() == 0.0 && real.abs() < 1e15 => {
                Bound::Integer(real as i64)
            }
            (None, real) => Bound::Real(real.unwrap_or_default()),
        },
        Value::String(text) => Bound::Text(text.clone()),
        other => Bound::Text(other.to_string()),
    }
}

/// A row as JSON. A row that is too long is truncated.
fn row_to_json(row: &Row<'_>, names: &[String], max: usize) -> rusqlite::Result<String> {
    let mut text = String::from("{");
    for (index, name) in names.iter().enumerate() {
        if text.len() > max {
            break;
        }
        if index > 0 {
            text.push(',');
        }
        text.push_str(name);
        text.push(':');
        match row.get_ref(index)? {
            ValueRef::Null => text.push_str("null"),
            ValueRef::Integer(number) => text.push_str(&number.to_string()),
            ValueRef::Real(number) => text.push_str(&serde_json::json!(number).to_string()),
            ValueRef::Text(bytes) => text.push_str(&quote_json(&String::from_utf8_lossy(bytes))),
            ValueRef::Blob(bytes) => text.push_str(&quote_json(&to_postgres_hex(bytes))),
        }
    }
    text.push('}');
    Ok(text)
}
