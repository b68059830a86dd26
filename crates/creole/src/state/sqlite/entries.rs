//! Keyed values and leases in the file.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::{Condition, Namespace, StateError, StateLimits, StoredEntry};
use super::SqliteResult;
use super::capacity::{SWEPT_PER_WRITE, SWEPT_WHEN_FULL, full_error, sweep, totals};

/// A value to be written.
pub(super) struct PendingWrite {
    pub(super) space: Namespace,
    pub(super) key: String,
    pub(super) condition: Condition,
    pub(super) value: Bytes,
    pub(super) expires: Option<i64>,
}

/// A row, which may have expired.
struct StoredRow {
    version: u64,
    length: usize,
    is_live: bool,
}

pub(super) fn get(
    connection: &Connection,
    space: Namespace,
    key: &str,
    now: i64,
) -> SqliteResult<Option<StoredEntry>> {
    let sql = "SELECT value, version FROM entries
               WHERE space = ?1 AND key = ?2 AND (expires IS NULL OR expires > ?3)";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row(params![namespace_number(space), key, now], |row| {
        Ok(StoredEntry { value: row.get::<_, Vec<u8>>(0)?.into(), version: unsigned(row.get(1)?) })
    });
    Ok(found.optional()?)
}

pub(super) fn write(
    connection: &Connection,
    writing: &PendingWrite,
    now: i64,
    limits: &StateLimits,
) -> SqliteResult<Option<u64>> {
    sweep(connection, now, SWEPT_PER_WRITE)?;
    let mut row = find(connection, writing.space, &writing.key, now)?;
    let live = row.as_ref().filter(|row| row.is_live).map(|row| row.version);
    if !writing.condition.matches(live) {
        return Ok(None);
    }
    if has_room(connection, writing, row.as_ref(), limits)?.is_err() {
        sweep(connection, now, SWEPT_WHEN_FULL)?;
        row = find(connection, writing.space, &writing.key, now)?;
        has_room(connection, writing, row.as_ref(), limits)??;
    }
    let version = next_version(connection)?;
    let sql =
        "INSERT INTO entries (space, key, value, version, expires) VALUES (?1, ?2, ?3, ?4, ?5)
               ON CONFLICT (space, key) DO UPDATE SET
                   value = excluded.value, version = excluded.version, expires = excluded.expires";
    let PendingWrite { space, key, value, expires, .. } = writing;
    connection.prepare_cached(sql)?.execute(params![
        namespace_number(*space),
        key,
        &value[..],
        version,
        expires
    ])?;
    Ok(Some(unsigned(version)))
}

pub(super) fn touch(
    connection: &Connection,
    (space, key): (Namespace, &str),
    condition: Condition,
    now: i64,
    expires: Option<i64>,
) -> SqliteResult<bool> {
    sweep(connection, now, SWEPT_PER_WRITE)?;
    if !is_live(connection, space, key, condition, now)? {
        return Ok(false);
    }
    let sql = "UPDATE entries SET expires = ?3 WHERE space = ?1 AND key = ?2";
    connection.prepare_cached(sql)?.execute(params![namespace_number(space), key, expires])?;
    Ok(true)
}

pub(super) fn remove(
    connection: &Connection,
    (space, key): (Namespace, &str),
    condition: Condition,
    now: i64,
) -> SqliteResult<bool> {
    sweep(connection, now, SWEPT_PER_WRITE)?;
    if !is_live(connection, space, key, condition, now)? {
        return Ok(false);
    }
    let sql = "DELETE FROM entries WHERE space = ?1 AND key = ?2";
    connection.prepare_cached(sql)?.execute(params![namespace_number(space), key])?;
    Ok(true)
}

fn find(
    connection: &Connection,
    space: Namespace,
    key: &str,
    now: i64,
) -> SqliteResult<Option<StoredRow>> {
    let sql = "SELECT version, length(value), expires IS NULL OR expires > ?3 FROM entries
               WHERE space = ?1 AND key = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row(params![namespace_number(space), key, now], |row| {
        Ok(StoredRow {
            version: unsigned(row.get(0)?),
            length: usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
            is_live: row.get(2)?,
        })
    });
    Ok(found.optional()?)
}

fn is_live(
    connection: &Connection,
    space: Namespace,
    key: &str,
    condition: Condition,
    now: i64,
) -> SqliteResult<bool> {
    let row = find(connection, space, key, now)?.filter(|row| row.is_live);
    Ok(row.is_some_and(|row| condition.matches(Some(row.version))))
}

/// The outer error is one of the file; the inner one names the limit.
fn has_room(
    connection: &Connection,
    writing: &PendingWrite,
    row: Option<&StoredRow>,
    limits: &StateLimits,
) -> SqliteResult<Result<(), StateError>> {
    let totals = totals(connection)?;
    let length = writing.value.len();
    let added = match row {
        Some(row) => length.saturating_sub(row.length),
        None => writing.key.len() + length + StateLimits::OVERHEAD,
    };
    if row.is_none() && totals.entries >= limits.entries {
        let full = StateError::Full { kind: "values and leases", max: limits.entries };
        return Ok(Err(full));
    }
    let fits = totals.bytes.saturating_add(added) <= limits.bytes;
    Ok(if fits { Ok(()) } else { Err(full_error(limits)) })
}

fn next_version(connection: &Connection) -> SqliteResult<i64> {
    let sql = "UPDATE totals SET version = version + 1 RETURNING version";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

fn namespace_number(space: Namespace) -> i64 {
    match space {
        Namespace::Entries => 0,
        Namespace::Leases => 1,
    }
}

/// Versions start at 1, so a negative one never existed.
fn unsigned(version: i64) -> u64 {
    u64::try_from(version).unwrap_or(0)
}
