//! Keyed values and leases in the database.

use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::types::Type;

use super::super::{Condition, Namespace, Result, StateError, StoredEntry};
use super::connection::PostgresQuery;
use super::{PostgresState, lock_number, microseconds, positive, signed, time_to_live};

const GET: PostgresQuery = PostgresQuery {
    sql: "SELECT value, version FROM creole.entries
          WHERE cluster = $1 AND space = $2 AND key = $3 AND (expires IS NULL OR expires > creole.moment($4))",
    types: &[Type::TEXT, Type::INT2, Type::BYTEA, Type::INT8],
    is_change: false,
};

const WRITE: PostgresQuery = PostgresQuery {
    sql: "SELECT creole.write_entry($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    types: &[
        Type::TEXT,
        Type::INT2,
        Type::BYTEA,
        Type::INT8,
        Type::INT8,
        Type::BYTEA,
        Type::INT8,
        Type::INT8,
        Type::INT8,
        Type::INT8,
    ],
    is_change: true,
};

const TOUCH: PostgresQuery = PostgresQuery {
    sql: "WITH present AS MATERIALIZED (SELECT creole.moment($6) AS moment)
          UPDATE creole.entries e SET expires = present.moment + $5 FROM present
          WHERE e.cluster = $1 AND e.space = $2 AND e.key = $3 AND ($4 IS NULL OR e.version = $4)
              AND (e.expires IS NULL OR e.expires > present.moment)
          RETURNING true",
    types: &[Type::TEXT, Type::INT2, Type::BYTEA, Type::INT8, Type::INT8, Type::INT8],
    is_change: true,
};

const REMOVE: PostgresQuery = PostgresQuery {
    sql: "SELECT creole.remove_entry($1, $2, $3, $4, $5)",
    types: &[Type::TEXT, Type::INT2, Type::BYTEA, Type::INT8, Type::INT8],
    is_change: true,
};

/// The results of `creole.write_entry` that are no versions.
const LOST: i64 = 0;
const TOO_MANY_ENTRIES: i64 = -1;
const TOO_MANY_BYTES: i64 = -2;

impl PostgresState {
    pub(in super::super) async fn get(
        &self,
        space: Namespace,
        key: &str,
        given: Option<Duration>,
    ) -> Result<Option<StoredEntry>> {
        let (space, key, given) = (space_number(space), key.as_bytes(), given.map(microseconds));
        let rows = self.query(&GET, &[&self.cluster(), &space, &key, &given]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let value: Vec<u8> = self.column(row, 0)?;
        Ok(Some(StoredEntry { value: value.into(), version: positive(self.column(row, 1)?) }))
    }

    pub(in super::super) async fn write(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        value: Bytes,
        ttl: Option<Duration>,
        given: Option<Duration>,
    ) -> Result<Option<u64>> {
        let space = space_number(space);
        let lock = lock_number(self.cluster(), &[b'e', space.to_le_bytes()[0]], key);
        let limits = self.limits();
        let (max_entries, max_bytes) = (signed(limits.entries), signed(limits.bytes));
        let rows = self
            .query(
                &WRITE,
                &[
                    &self.cluster(),
                    &space,
                    &key.as_bytes(),
                    &lock,
                    &expected_version(condition),
                    &&value[..],
                    &ttl.map(time_to_live),
                    &given.map(microseconds),
                    &max_entries,
                    &max_bytes,
                ],
            )
            .await?;
        match self.only_column(&rows)? {
            LOST => Ok(None),
            TOO_MANY_ENTRIES => {
                Err(StateError::Full { kind: "values and leases", max: limits.entries })
            }
            TOO_MANY_BYTES => Err(StateError::Full { kind: "bytes", max: limits.bytes }),
            version => Ok(Some(positive(version))),
        }
    }

    pub(in super::super) async fn touch(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        ttl: Option<Duration>,
        given: Option<Duration>,
    ) -> Result<bool> {
        let rows = self
            .query(
                &TOUCH,
                &[
                    &self.cluster(),
                    &space_number(space),
                    &key.as_bytes(),
                    &expected_version(condition),
                    &ttl.map(time_to_live),
                    &given.map(microseconds),
                ],
            )
            .await?;
        Ok(!rows.is_empty())
    }

    pub(in super::super) async fn remove(
        &self,
        space: Namespace,
        key: &str,
        condition: Condition,
        given: Option<Duration>,
    ) -> Result<bool> {
        let rows = self
            .query(
                &REMOVE,
                &[
                    &self.cluster(),
                    &space_number(space),
                    &key.as_bytes(),
                    &expected_version(condition),
                    &given.map(microseconds),
                ],
            )
            .await?;
        self.only_column(&rows)
    }
}

/// The condition as the functions expect it: no number is any version, and 0 is an absent key.
fn expected_version(condition: Condition) -> Option<i64> {
    match condition {
        Condition::Any => None,
        Condition::Absent => Some(0),
        // No entry ever has this version.
        Condition::Version(0) => Some(i64::MAX),
        Condition::Version(version) => Some(i64::try_from(version).unwrap_or(i64::MAX)),
    }
}

fn space_number(space: Namespace) -> i16 {
    match space {
        Namespace::Entries => 0,
        Namespace::Leases => 1,
    }
}
