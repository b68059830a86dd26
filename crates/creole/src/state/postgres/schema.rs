//! The schema of the database and its migrations.

use std::time::Duration;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::failure::ConnectFailure;

/// The migrations from one version to the next; the version is the number that were applied. Never edit a released one:
/// add another.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql")];

/// The advisory lock of migrations: "CrSvmigr" in ASCII.
const MIGRATION_LOCK: &str = "SELECT pg_advisory_xact_lock(4860038715993057138)";

/// The first statement of a connection. Every version of the schema has this function.
const BEGIN_CONNECTION: &str =
    "SELECT schema_version, is_read_only FROM creole.begin_connection($1)";

/// Prepares the database for a connection: migrates an older schema, and refuses a newer one. Returns whether the
/// database is read-only at present. A read-only database must be prepared again before the first change, because
/// this sets the number of the next version.
pub(super) async fn prepare(client: &Client) -> Result<bool, ConnectFailure> {
    match begin_connection(client).await {
        Ok((found, is_read_only)) if found == newest_version() => return Ok(is_read_only),
        Ok((found, _)) => refuse_newer(found)?,
        Err(error) if is_missing(&error) => {}
        Err(error) => return Err(ConnectFailure::of(&error)),
    }
    migrate(client).await?;
    let (_, is_read_only) =
        begin_connection(client).await.map_err(|error| ConnectFailure::of(&error))?;
    Ok(is_read_only)
}

/// The time of the server since 1970.
pub(super) async fn server_time(client: &Client) -> Option<Duration> {
    let row = client.query_typed_one("SELECT creole.moment(NULL)", &[]).await.ok()?;
    let microseconds: i64 = row.try_get(0).ok()?;
    Some(Duration::from_micros(u64::try_from(microseconds).ok()?))
}

async fn begin_connection(client: &Client) -> Result<(i32, bool), tokio_postgres::Error> {
    let known = newest_version();
    let types =
        [(&known as &(dyn tokio_postgres::types::ToSql + Sync), tokio_postgres::types::Type::INT4)];
    let row = client.query_typed_one(BEGIN_CONNECTION, &types).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

async fn migrate(client: &Client) -> Result<(), ConnectFailure> {
    let failed = |error: tokio_postgres::Error| ConnectFailure::of(&error);
    client.batch_execute(&format!("BEGIN; {MIGRATION_LOCK}")).await.map_err(failed)?;
    // `IF NOT EXISTS` alone needs the right to create schemas even where the schema exists.
    let sql = "DO $$ BEGIN
        IF to_regnamespace('creole') IS NULL THEN CREATE SCHEMA creole; END IF;
        IF to_regclass('creole.schema_version') IS NULL THEN
            CREATE TABLE creole.schema_version (version integer NOT NULL);
            INSERT INTO creole.schema_version VALUES (0);
        END IF;
    END $$";
    client.batch_execute(sql).await.map_err(failed)?;
    // Another process may have been faster.
    let sql = "SELECT version FROM creole.schema_version";
    let row = client.query_typed_one(sql, &[]).await.map_err(failed)?;
    let found: i32 = row.try_get(0).map_err(failed)?;
    refuse_newer(found)?;
    let applied = usize::try_from(found).unwrap_or(0);
    for migration in MIGRATIONS.iter().skip(applied) {
        client.batch_execute(migration).await.map_err(failed)?;
    }
    let sql = format!("UPDATE creole.schema_version SET version = {}; COMMIT", newest_version());
    client.batch_execute(&sql).await.map_err(failed)
}

/// The caller drops the connection, which ends its transaction.
fn refuse_newer(found: i32) -> Result<(), ConnectFailure> {
    let known = newest_version();
    if found <= known {
        return Ok(());
    }
    Err(ConnectFailure::Misconfigured(format!(
        "a newer version of this program wrote its schema `creole` (it has version {found}, this program supports \
         {known}), and it was not changed; update this program or use another database"
    )))
}

fn is_missing(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::UNDEFINED_FUNCTION, SqlState::INVALID_SCHEMA_NAME].contains(code)
    })
}

fn newest_version() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}
