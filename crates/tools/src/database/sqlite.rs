//! SQLite files, read by a few connections that can do nothing else.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{Value as Bound, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, params_from_iter};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::rows::{Rows, hexadecimal, quoted};
use super::{Room, Trouble};

/// How long a read waits for another process's write.
const PATIENCE: Duration = Duration::from_secs(2);
/// How many steps of a query pass between two looks at the clock.
const STEPS: i32 = 1000;
/// The largest single value, in bytes.
const LARGEST: i32 = 64 << 20;

/// The connections to one file.
#[derive(Debug)]
pub(super) struct Files {
    file: PathBuf,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Connection>>>,
}

/// Stops a query whose caller has gone.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Files {
    pub(super) fn new(file: &Path, connections: usize) -> Self {
        let places = Arc::new(Semaphore::new(connections));
        Self { file: file.to_owned(), places, idle: Arc::default() }
    }

    pub(super) async fn rows(
        &self,
        sql: String,
        values: Vec<Value>,
        room: Room,
    ) -> Result<Rows, Trouble> {
        let closed = |_| Trouble::Unavailable("it is closed".to_owned());
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let (file, idle) = (self.file.clone(), Arc::clone(&self.idle));
        let stop = Stop(Arc::default());
        let stopped = Arc::clone(&stop.0);
        let work = tokio::task::spawn_blocking(move || {
            // The place is given back with the connection, even if nobody waits any more.
            let _place = place;
            let kept = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let mut connection = kept.map_or_else(|| open(&file), Ok)?;
            let rows = read(&mut connection, &sql, &values, room, stopped);
            if !matches!(rows, Err(Trouble::Unavailable(_))) {
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            rows
        });
        let done = work.await;
        drop(stop);
        done.unwrap_or_else(|_| Err(Trouble::Unavailable("the reader broke down".to_owned())))
    }
}

/// Whether a query could be asked of a file.
pub(super) fn check(file: &Path, sql: &str) -> Result<(), Trouble> {
    let connection = open(file)?;
    let tried = connection.prepare(&framed(sql, 1)).map(drop);
    tried.map_err(|error| Trouble::sqlite(&error))
}

/// The query within another one: as a part of that it has to be one reading statement.
fn framed(sql: &str, most: usize) -> String {
    format!("SELECT * FROM (\n{sql}\n) AS query LIMIT {most}")
}

/// Opens a file for reading, with every lock there is on the way to anything else.
fn open(file: &Path) -> Result<Connection, Trouble> {
    let failed = |error: rusqlite::Error| Trouble::sqlite(&error);
    // Without the flag for URIs, a file's name is nothing but its name.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(file, flags).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
    ] {
        connection.set_db_config(config, value).map_err(failed)?;
    }
    for (limit, value) in [(Limit::SQLITE_LIMIT_ATTACHED, 0), (Limit::SQLITE_LIMIT_LENGTH, LARGEST)]
    {
        connection.set_limit(limit, value).map_err(failed)?;
    }
    connection.authorizer(Some(authorize)).map_err(failed)?;
    Ok(connection)
}

/// Reading is allowed, and nothing else: no other file, no setting, no code from outside.
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
    room: Room,
    stopped: Arc<AtomicBool>,
) -> Result<Rows, Trouble> {
    let failed = |error: rusqlite::Error| Trouble::sqlite(&error);
    let end = Instant::now() + room.time;
    let over = move || stopped.load(Ordering::Relaxed) || Instant::now() >= end;
    connection.progress_handler(STEPS, Some(over)).map_err(failed)?;
    let rows = collect(connection, sql, values, room);
    connection.progress_handler(0, None::<fn() -> bool>).map_err(failed)?;
    rows
}

fn collect(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    room: Room,
) -> Result<Rows, Trouble> {
    let failed = |error: rusqlite::Error| Trouble::sqlite(&error);
    let mut statement = connection.prepare_cached(&framed(sql, room.rows + 1)).map_err(failed)?;
    let names: Vec<String> = statement.column_names().map(quoted).collect();
    let mut found = statement.query(params_from_iter(values.iter().map(bound))).map_err(failed)?;
    let (mut rows, mut bytes) = (Rows::default(), 0);
    while let Some(row) = found.next().map_err(failed)? {
        if rows.rows.len() == room.rows {
            rows.more = true;
            break;
        }
        let text = object(row, &names, room.bytes).map_err(failed)?;
        bytes += text.len();
        if bytes > room.bytes {
            if rows.rows.is_empty() {
                return Err(Trouble::TooLarge(room.bytes));
            }
            rows.more = true;
            break;
        }
        rows.rows.push(text);
    }
    Ok(rows)
}

/// A value as SQLite has it. Lists and objects are JSON text, which `json_each` reads.
fn bound(value: &Value) -> Bound {
    match value {
        Value::Null => Bound::Null,
        Value::Bool(yes) => Bound::Integer(i64::from(*yes)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Bound::Integer(whole),
            // Schemas call 5.0 an integer.
            (None, Some(real)) if real.fract() == 0.0 && real.abs() < 1e15 => {
                Bound::Integer(real as i64)
            }
            (None, real) => Bound::Real(real.unwrap_or_default()),
        },
        Value::String(text) => Bound::Text(text.clone()),
        other => Bound::Text(other.to_string()),
    }
}

/// A row as JSON; one that is too long is not written to its end.
fn object(row: &Row<'_>, names: &[String], most: usize) -> rusqlite::Result<String> {
    let mut text = String::from("{");
    for (index, name) in names.iter().enumerate() {
        if text.len() > most {
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
            ValueRef::Text(bytes) => text.push_str(&quoted(&String::from_utf8_lossy(bytes))),
            ValueRef::Blob(bytes) => text.push_str(&quoted(&hexadecimal(bytes))),
        }
    }
    text.push('}');
    Ok(text)
}
