//! Logs in the database. The last number of a log whose entries are all removed is kept until its space is needed, so
//! that a late reader can detect that it missed entries.

use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::types::Type;

use super::super::{LogRetention, Result, StateError};
use super::connection::PostgresQuery;
use super::{PostgresState, lock_number, microseconds, positive, signed, time_to_live};

const APPEND: PostgresQuery = PostgresQuery {
    sql: "SELECT creole.append_entry($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    types: &[
        Type::TEXT,
        Type::BYTEA,
        Type::INT8,
        Type::BYTEA,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
    ],
    is_change: true,
};

/// One statement, so that the log and its entries are of one moment. The first row exists whenever the log does.
const READ_AFTER: PostgresQuery = PostgresQuery {
    sql: "WITH present AS MATERIALIZED (SELECT creole.moment($5) AS moment),
          log AS MATERIALIZED (
              SELECT l.id, l.last, coalesce(
                  (SELECT e.sequence - 1 FROM creole.log_entries e, present
                   WHERE e.log = l.id AND e.expires > present.moment ORDER BY e.sequence LIMIT 1),
                  l.last
              ) AS resume_after
              FROM creole.logs l WHERE l.cluster = $1 AND l.name = $2
          )
          SELECT log.last, log.resume_after, e.sequence, e.entry FROM log LEFT JOIN LATERAL (
              SELECT n.sequence, n.entry FROM creole.log_entries n
              WHERE n.log = log.id AND n.sequence > $3 AND $3 BETWEEN log.resume_after AND log.last
              ORDER BY n.sequence LIMIT $4
          ) e ON true ORDER BY e.sequence",
    types: &[Type::TEXT, Type::BYTEA, Type::INT8, Type::INT8, Type::INT8],
    is_change: false,
};

const REMOVE: PostgresQuery = PostgresQuery {
    sql: "SELECT creole.remove_log($1, $2, $3, $4)",
    types: &[Type::TEXT, Type::BYTEA, Type::INT8, Type::INT8],
    is_change: true,
};

/// The results of `creole.append_entry` that are no numbers.
const TOO_MANY_LOGS: i64 = -1;
const TOO_MANY_BYTES: i64 = -2;

impl PostgresState {
    pub(in super::super) async fn append(
        &self,
        log: &str,
        entry: Bytes,
        keep: LogRetention,
        given: Option<Duration>,
    ) -> Result<u64> {
        let limits = self.limits();
        let (max_logs, max_bytes) = (signed(limits.logs), signed(limits.bytes));
        let rows = self
            .query(
                &APPEND,
                &[
                    &self.cluster(),
                    &log.as_bytes(),
                    &lock_number(self.cluster(), b"l", log),
                    &&entry[..],
                    &signed(keep.entries),
                    &time_to_live(keep.ttl),
                    &given.map(microseconds),
                    &max_logs,
                    &max_bytes,
                ],
            )
            .await?;
        match self.only_column(&rows)? {
            TOO_MANY_LOGS => Err(StateError::Full { kind: "logs", max: limits.logs }),
            TOO_MANY_BYTES => Err(StateError::Full { kind: "bytes", max: limits.bytes }),
            number => Ok(positive(number)),
        }
    }

    pub(in super::super) async fn read_after(
        &self,
        log: &str,
        after: u64,
        max: usize,
        given: Option<Duration>,
    ) -> Result<Vec<(u64, Bytes)>> {
        let (name, given) = (log.as_bytes(), given.map(microseconds));
        // A greater number was never assigned.
        let position = i64::try_from(after).unwrap_or(i64::MAX);
        let parameters = (self.cluster(), signed(max));
        let rows = self
            .query(&READ_AFTER, &[&parameters.0, &name, &position, &parameters.1, &given])
            .await?;
        let Some(first) = rows.first() else {
            let trimmed = StateError::Trimmed { resume_after: 0 };
            return if after == 0 { Ok(vec![]) } else { Err(trimmed) };
        };
        let (last, resume_after): (i64, i64) = (self.column(first, 0)?, self.column(first, 1)?);
        if !(resume_after..=last).contains(&position) {
            return Err(StateError::Trimmed { resume_after: positive(resume_after) });
        }
        let mut entries = Vec::with_capacity(rows.len());
        for row in &rows {
            // A log without further entries still has the row with its numbers.
            let Some(sequence) = self.column(row, 2)? else { continue };
            let entry: Vec<u8> = self.column(row, 3)?;
            entries.push((positive(sequence), entry.into()));
        }
        Ok(entries)
    }

    pub(in super::super) async fn remove_log(
        &self,
        log: &str,
        given: Option<Duration>,
    ) -> Result<bool> {
        let lock = lock_number(self.cluster(), b"l", log);
        let (name, given) = (log.as_bytes(), given.map(microseconds));
        let rows = self.query(&REMOVE, &[&self.cluster(), &name, &lock, &given]).await?;
        self.only_column(&rows)
    }
}
