//! Logs in the file. The last number of a log whose entries are all removed is kept until its space is needed, so that
//! a late reader can detect that it missed entries.

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::{StateError, StateLimits};
use super::{SqliteResult, capacity, signed};

/// The row of a log.
struct LogRow {
    id: i64,
    last: i64,
    expires: i64,
}

pub(super) fn append(
    connection: &Connection,
    name: &str,
    entry: &Bytes,
    keep: usize,
    (now, expires): (i64, i64),
    limits: &StateLimits,
) -> SqliteResult<u64> {
    capacity::make_room(connection, entry.len() + StateLimits::OVERHEAD, now, limits)?;
    let head = match find(connection, name)? {
        Some(head) => head,
        None => ensure(connection, name, now, limits)?,
    };
    let sequence = head.last.saturating_add(1);
    // An entry never expires before an earlier one, so the rest of a log has no gaps.
    let expires = expires.max(head.expires);
    let sql = "UPDATE logs SET last = ?2, expires = ?3 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![head.id, sequence, expires])?;
    let sql = "INSERT INTO log_entries (log, sequence, entry, expires) VALUES (?1, ?2, ?3, ?4)";
    connection.prepare_cached(sql)?.execute(params![head.id, sequence, &entry[..], expires])?;
    let sql = "DELETE FROM log_entries WHERE log = ?1 AND sequence <= ?2";
    let last_gone = sequence.saturating_sub(signed(keep));
    connection.prepare_cached(sql)?.execute(params![head.id, last_gone])?;
    Ok(unsigned(sequence))
}

pub(super) fn read_after(
    connection: &Connection,
    name: &str,
    after: u64,
    max: usize,
    now: i64,
) -> SqliteResult<Vec<(u64, Bytes)>> {
    let Some(head) = find(connection, name)? else {
        let trimmed = StateError::Trimmed { resume_after: 0 };
        return if after == 0 { Ok(vec![]) } else { Err(trimmed.into()) };
    };
    let sql = "SELECT sequence FROM log_entries WHERE log = ?1 AND expires > ?2
               ORDER BY sequence LIMIT 1";
    let mut statement = connection.prepare_cached(sql)?;
    let first = statement.query_row([head.id, now], |row| row.get::<_, i64>(0)).optional()?;
    let resume_after = first.map_or(head.last, |first| first - 1);
    let known =
        i64::try_from(after).ok().filter(|after| (resume_after..=head.last).contains(after));
    let Some(after) = known else {
        return Err(StateError::Trimmed { resume_after: unsigned(resume_after) }.into());
    };
    let sql = "SELECT sequence, entry FROM log_entries WHERE log = ?1 AND sequence > ?2
               ORDER BY sequence LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![head.id, after, signed(max)], |row| {
        Ok((unsigned(row.get(0)?), row.get::<_, Vec<u8>>(1)?.into()))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Removes a log; returns whether it existed.
pub(super) fn remove(connection: &Connection, name: &str, now: i64) -> SqliteResult<bool> {
    let sql = "DELETE FROM logs WHERE name = ?1 RETURNING expires";
    let mut statement = connection.prepare_cached(sql)?;
    let expires = statement.query_row([name], |row| row.get::<_, i64>(0)).optional()?;
    Ok(expires.is_some_and(|expires| expires > now))
}

fn find(connection: &Connection, name: &str) -> SqliteResult<Option<LogRow>> {
    let sql = "SELECT id, last, expires FROM logs WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let head = statement.query_row([name], |row| {
        Ok(LogRow { id: row.get(0)?, last: row.get(1)?, expires: row.get(2)? })
    });
    Ok(head.optional()?)
}

fn ensure(
    connection: &Connection,
    name: &str,
    now: i64,
    limits: &StateLimits,
) -> SqliteResult<LogRow> {
    if capacity::totals(connection)?.logs >= limits.logs {
        let sql = "DELETE FROM logs WHERE id =
                   (SELECT id FROM logs WHERE expires <= ?1 ORDER BY expires LIMIT 1)";
        if connection.prepare_cached(sql)?.execute([now])? == 0 {
            return Err(StateError::Full { kind: "logs", max: limits.logs }.into());
        }
    }
    let sql = "INSERT INTO logs (name, last, expires) VALUES (?1, 0, ?2)";
    connection.prepare_cached(sql)?.execute(params![name, now])?;
    Ok(LogRow { id: connection.last_insert_rowid(), last: 0, expires: now })
}

/// Numbers start at 1.
fn unsigned(sequence: i64) -> u64 {
    u64::try_from(sequence).unwrap_or(0)
}
