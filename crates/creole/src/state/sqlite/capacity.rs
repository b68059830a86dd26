//! The room in the file: its totals, and the removal of expired rows.

use rusqlite::{Connection, params};

use super::super::{StateError, StateLimits};
use super::{SqliteResult, messages, signed};

/// How many expired rows of each table are deleted with every write. More than one, so that they are deleted faster
/// than they are added.
pub(super) const SWEPT_PER_WRITE: usize = 8;
/// The same when there is no room.
pub(super) const SWEPT_WHEN_FULL: usize = 1024;

/// The totals of all data.
pub(super) struct Totals {
    pub(super) entries: usize,
    pub(super) logs: usize,
    pub(super) bytes: usize,
}

/// Checks that there is room for this many more bytes, and deletes expired rows if necessary.
pub(super) fn make_room(
    connection: &Connection,
    bytes: usize,
    now: i64,
    limits: &StateLimits,
) -> SqliteResult<()> {
    sweep(connection, now, SWEPT_PER_WRITE)?;
    let fits = |totals: Totals| totals.bytes.saturating_add(bytes) <= limits.bytes;
    if fits(totals(connection)?) {
        return Ok(());
    }
    sweep(connection, now, SWEPT_WHEN_FULL)?;
    if fits(totals(connection)?) { Ok(()) } else { Err(full_error(limits).into()) }
}

/// Reads the totals.
pub(super) fn totals(connection: &Connection) -> SqliteResult<Totals> {
    let sql = "SELECT entries, logs, bytes FROM totals";
    let count = |number: i64| usize::try_from(number).unwrap_or(0);
    let totals = connection.prepare_cached(sql)?.query_row([], |row| {
        Ok(Totals {
            entries: count(row.get(0)?),
            logs: count(row.get(1)?),
            bytes: count(row.get(2)?),
        })
    })?;
    Ok(totals)
}

/// Deletes at most `most` expired rows of each table.
pub(super) fn sweep(connection: &Connection, now: i64, max: usize) -> SqliteResult<()> {
    let sql = "DELETE FROM entries WHERE rowid IN
               (SELECT rowid FROM entries WHERE expires <= ?1 ORDER BY expires LIMIT ?2)";
    connection.prepare_cached(sql)?.execute(params![now, signed(max)])?;
    let sql = "DELETE FROM log_entries WHERE rowid IN
               (SELECT rowid FROM log_entries WHERE expires <= ?1 ORDER BY expires, sequence LIMIT ?2)";
    connection.prepare_cached(sql)?.execute(params![now, signed(max)])?;
    messages::sweep(connection, now, max)
}

/// The error when there is no room for more bytes.
pub(super) fn full_error(limits: &StateLimits) -> StateError {
    StateError::Full { kind: "bytes", max: limits.bytes }
}
