//! Opens the state file without harming foreign files, and migrates it.

use std::fs::OpenOptions;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use super::super::StateError;
use super::super::error::StateFileError;
use super::SqliteResult;
use super::failure::SqliteFailure;

/// How long a process waits for another process's write.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Marks our files among all SQLite databases: "CrSt".
const APPLICATION_ID: i32 = 0x4372_5374;

/// Every database is at least this large, except an empty one. SQLite treats a file of one byte as empty and would
/// overwrite it.
const MIN_DATABASE_BYTES: u64 = 512;

/// The migrations from one version to the next; the version is the number that were applied. Never edit a released one:
/// add another.
const MIGRATIONS: &[&str] = &["
    -- One row. What there is of everything is counted as it comes and goes, because counting it anew
    -- would read all of it. `version` is the one that was given out last, for all keys: none has to be
    -- remembered when its value is gone.
    CREATE TABLE totals (
        version INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        logs INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    ) STRICT;
    INSERT INTO totals VALUES (0, 0, 0, 0);

    CREATE TABLE entries (
        space INTEGER NOT NULL,
        key TEXT NOT NULL,
        value BLOB NOT NULL,
        version INTEGER NOT NULL,
        expires INTEGER,
        PRIMARY KEY (space, key)
    ) STRICT;
    CREATE INDEX entries_by_age ON entries (expires) WHERE expires IS NOT NULL;
    CREATE TRIGGER entry_came AFTER INSERT ON entries BEGIN
        UPDATE totals SET entries = entries + 1,
            bytes = bytes + octet_length(new.key) + length(new.value) + 128;
    END;
    CREATE TRIGGER entry_changed AFTER UPDATE OF value ON entries BEGIN
        UPDATE totals SET bytes = bytes + length(new.value) - length(old.value);
    END;
    CREATE TRIGGER entry_went AFTER DELETE ON entries BEGIN
        UPDATE totals SET entries = entries - 1,
            bytes = bytes - octet_length(old.key) - length(old.value) - 128;
    END;

    CREATE TABLE logs (
        -- AUTOINCREMENT never gives out a number twice, so entries never find themselves in another log.
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        last INTEGER NOT NULL,
        expires INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX logs_by_age ON logs (expires);
    CREATE TABLE log_entries (
        log INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        entry BLOB NOT NULL,
        expires INTEGER NOT NULL,
        PRIMARY KEY (log, sequence)
    ) STRICT;
    CREATE INDEX log_entries_by_age ON log_entries (expires, sequence);
    CREATE TRIGGER log_came AFTER INSERT ON logs BEGIN
        UPDATE totals SET logs = logs + 1;
    END;
    CREATE TRIGGER log_went AFTER DELETE ON logs BEGIN
        DELETE FROM log_entries WHERE log = old.id;
        UPDATE totals SET logs = logs - 1;
    END;
    CREATE TRIGGER log_entry_came AFTER INSERT ON log_entries BEGIN
        UPDATE totals SET bytes = bytes + length(new.entry) + 128;
    END;
    CREATE TRIGGER log_entry_went AFTER DELETE ON log_entries BEGIN
        UPDATE totals SET bytes = bytes - length(old.entry) - 128;
    END;

    CREATE TABLE messages (
        -- Without gaps, so a reader sees when some were thrown away before it came to them.
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        origin INTEGER NOT NULL,
        topic TEXT NOT NULL,
        message BLOB NOT NULL,
        sent INTEGER NOT NULL
    ) STRICT;
"];

/// Opens or creates a state file. An unknown file is left unchanged.
pub(super) fn open(path: &Path) -> SqliteResult<Connection> {
    let refused =
        |problem| SqliteFailure::State(StateError::File { path: path.into(), error: problem });
    make(path).map_err(|error| refused(StateFileError::Inaccessible(error.to_string().into())))?;
    if fs::metadata(path).is_ok_and(|file| (1..MIN_DATABASE_BYTES).contains(&file.len())) {
        return Err(refused(StateFileError::Foreign));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // If the file is rejected, closing it must not write its WAL into it either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    if let Some(problem) = find_incompatibility(&mut connection)? {
        return Err(refused(problem));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    make_durable(&connection)?;
    migrate(&mut connection)?;
    Ok(connection)
}

/// Creates an empty file that only its owner may read: it holds callers' data. SQLite gives the files beside it the
/// same permissions.
fn make(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Why a file must not be used. Only reads, and in one transaction, because another process may be creating the file.
fn find_incompatibility(connection: &mut Connection) -> SqliteResult<Option<StateFileError>> {
    let moment = connection.transaction()?;
    let number = |pragma| moment.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = moment.query_row(count, [], |row| row.get(0))?;
    let (application, version) = (number("application_id")?, number("user_version")?);
    let is_new = application == 0 && version == 0 && tables == 0;
    if application != APPLICATION_ID && !is_new {
        return Ok(Some(StateFileError::Foreign));
    }
    let (found, known) = (u32::try_from(version).unwrap_or(u32::MAX), newest_version());
    if found > known {
        return Ok(Some(StateFileError::Newer { found, known }));
    }
    // Reads the whole file, which the limits keep small: better here than in the middle of the work.
    let sound: String = moment.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok((sound != "ok").then(|| StateFileError::Damaged(sound.into())))
}

/// Readers do not wait for writers, and acknowledged writes survive a crash *and* a power failure.
///
/// With WAL, `NORMAL` would be enough for `kill -9`, but a power failure could undo the last commits, and with them
/// versions and fencing numbers that were already returned: they would be assigned again. So the mode is `FULL`;
/// committing queued writes together makes up for its cost.
fn make_durable(connection: &Connection) -> SqliteResult<()> {
    // SQLite does not wait while another process changes the journal mode, so this retries.
    retry_while_busy(|| connection.pragma_update(None, "journal_mode", "WAL"))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Only on macOS does a plain fsync not reach the disk.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn migrate(connection: &mut Connection) -> SqliteResult<()> {
    let version = |connection: &Connection| {
        connection.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))
    };
    if version(connection)? >= newest_version() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let applied = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(usize::try_from(applied).unwrap_or(usize::MAX)) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest_version().max(applied))?;
    Ok(transaction.commit()?)
}

fn newest_version() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

fn retry_while_busy<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
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
