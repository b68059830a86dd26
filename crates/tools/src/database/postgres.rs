//! PostgreSQL: a small pool of connections, opened on demand and discarded after an incomplete use.

use creole::internal::sync::Mutex;
use creole::internal::tls::PostgresTls;
use std::error::Error;
use std::ops::Deref;
use std::sync::Arc;

use bytes::BytesMut;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type};
use tokio_postgres::{Client, Config};

use super::address::PostgresServer;
use super::query::Rows;
use super::{DatabaseError, ResultLimits};

/// A pool of connections to one server.
#[derive(Debug)]
pub(crate) struct PostgresPool {
    config: Config,
    tls: PostgresTls,
    permits: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Client>>>,
    /// The first statement on each connection.
    session_setup: &'static str,
}

impl PostgresPool {
    /// A pool for this server with at most this many connections. None is opened yet.
    pub(crate) fn new(server: &PostgresServer, connections: usize, greeting: &'static str) -> Self {
        let permits = Arc::new(Semaphore::new(connections));
        let tls = server.tls_mode().encryption();
        Self {
            config: server.config(),
            tls,
            permits,
            idle: Arc::default(),
            session_setup: greeting,
        }
    }

    /// Leases a connection for exclusive use. Idle connections that were lost are discarded.
    pub(crate) async fn lease(&self) -> Result<PostgresLease, DatabaseError> {
        let closed = |_| DatabaseError::Unavailable("the connection is closed".to_owned());
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(closed)?;
        let kept = {
            let mut idle = self.idle.lock();
            idle.retain(|client| !client.is_closed());
            idle.pop()
        };
        let is_fresh = kept.is_none();
        let client = match kept {
            Some(client) => client,
            None => self.connect().await?,
        };
        let (idle, tls) = (Arc::clone(&self.idle), self.tls.clone());
        Ok(PostgresLease {
            client: Some(client),
            idle,
            tls,
            is_done: false,
            is_fresh,
            _place: permit,
        })
    }

    async fn connect(&self) -> Result<Client, DatabaseError> {
        let failed = |error: tokio_postgres::Error| match DatabaseError::postgres(&error) {
            // An error before the first query concerns the login.
            DatabaseError::QueryRejected(reason) => DatabaseError::Unavailable(reason),
            other => other,
        };
        let (client, connection) = self.config.connect(self.tls.clone()).await.map_err(failed)?;
        // The task ends with the client. Its error is also reported to the running query.
        tokio::spawn(async move { drop(connection.await) });
        client.batch_execute(self.session_setup).await.map_err(failed)?;
        Ok(client)
    }
}

/// A leased connection. It returns to the pool only after `release`; otherwise its running query is cancelled.
pub(crate) struct PostgresLease {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    /// The encryption for the cancel request.
    tls: PostgresTls,
    is_done: bool,
    is_fresh: bool,
    _place: OwnedSemaphorePermit,
}

impl PostgresLease {
    /// Returns the connection to the pool after complete use.
    pub(crate) fn release(mut self) {
        self.is_done = true;
    }
}

impl Deref for PostgresLease {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("the connection exists until it is dropped")
    }
}

impl Drop for PostgresLease {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if self.is_done && !client.is_closed() {
            self.idle.lock().push(client);
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (query, tls) = (client.cancel_token(), self.tls.clone());
            runtime.spawn(async move { drop(query.cancel_query(tls).await) });
        }
    }
}

/// Lets the server prepare a query, without running it.
pub(super) async fn prepare(pool: &PostgresPool, sql: &str) -> Result<(), DatabaseError> {
    let lease = pool.lease().await?;
    // Inside another query it must be a single reading statement.
    let framed = format!("SELECT * FROM (\n{sql}\n) AS query");
    lease.prepare(&framed).await.map_err(|error| DatabaseError::postgres(&error))?;
    lease.release();
    Ok(())
}

/// The rows of a reading query. If the connection was lost, the query is repeated once on another one, since reading
/// twice is harmless.
pub(super) async fn rows(
    pool: &PostgresPool,
    sql: &str,
    values: &[Value],
    limits: ResultLimits,
) -> Result<Rows, DatabaseError> {
    if values.iter().any(contains_nul) {
        let reason = "PostgreSQL does not support the character U+0000 in text";
        return Err(DatabaseError::QueryRejected(reason.to_owned()));
    }
    let lease = pool.lease().await?;
    let is_fresh = lease.is_fresh;
    match read(lease, sql, values, limits).await {
        Err(DatabaseError::Unavailable(_)) if !is_fresh => {
            read(pool.lease().await?, sql, values, limits).await
        }
        rows => rows,
    }
}

async fn read(
    lease: PostgresLease,
    sql: &str,
    values: &[Value],
    limits: ResultLimits,
) -> Result<Rows, DatabaseError> {
    let time = limits.timeout.as_millis();
    let begin = format!("BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {time}");
    let failed = |error| DatabaseError::postgres(&error);
    let work = async {
        lease.batch_execute(&begin).await.map_err(failed)?;
        let found = fetch_row_texts(&lease, sql, values, limits).await;
        lease.batch_execute("ROLLBACK").await.map_err(failed)?;
        found
    };
    // The server enforces the timeout itself. This one is for a server that does not respond any more.
    let found = tokio::time::timeout(limits.timeout * 2, work)
        .await
        .map_err(|_| DatabaseError::TimedOut)?;
    if !matches!(found, Err(DatabaseError::Unavailable(_))) {
        lease.release();
    }
    take_fitting(found?, limits)
}

/// Fetches each row as JSON text, or null once the size limit is reached. The server counts the size, so that nothing
/// too large is sent.
async fn fetch_row_texts(
    client: &Client,
    sql: &str,
    values: &[Value],
    limits: ResultLimits,
) -> Result<Vec<Option<String>>, DatabaseError> {
    let failed = |error| DatabaseError::postgres(&error);
    let (rows, bytes) = (limits.max_rows + 1, limits.max_bytes);
    // Inside another query it must be a single reading statement.
    let whole = format!(
        "SELECT CASE WHEN size <= {bytes} THEN line END FROM (
            SELECT line, sum(octet_length(line)) OVER (ROWS UNBOUNDED PRECEDING) AS size FROM (
                SELECT row_to_json(query)::text AS line FROM (\n{sql}\n) AS query LIMIT {rows}
            ) AS lines
        ) AS sizes"
    );
    let statement = client.prepare(&whole).await.map_err(failed)?;
    if statement.params().len() != values.len() {
        return Err(DatabaseError::QueryRejected(
            "a placeholder of the query is not a parameter".to_owned(),
        ));
    }
    let given: Vec<TextParameter<'_>> = values.iter().map(TextParameter).collect();
    let given: Vec<&(dyn ToSql + Sync)> =
        given.iter().map(|text_parameter| text_parameter as _).collect();
    let found = client.query(&statement, &given).await.map_err(failed)?;
    found.iter().map(|row| row.try_get(0).map_err(failed)).collect()
}

fn take_fitting(texts: Vec<Option<String>>, limits: ResultLimits) -> Result<Rows, DatabaseError> {
    let count = texts.len();
    if let Some(None) = texts.first() {
        return Err(DatabaseError::TooLarge(limits.max_bytes));
    }
    let rows: Vec<String> =
        texts.into_iter().map_while(|text| text).take(limits.max_rows).collect();
    Ok(Rows { has_more: rows.len() < count, rows })
}

/// A value of a call as text, which the server converts to the parameter's type.
#[derive(Debug)]
pub(crate) struct TextParameter<'a>(pub(crate) &'a Value);

impl ToSql for TextParameter<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let text = match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::String(text) if is_json(kind) => Value::from(text.as_str()).to_string(),
            Value::String(text) => text.clone(),
            Value::Number(number) => format_integer(number),
            Value::Array(items) if matches!(kind.kind(), Kind::Array(_)) => format_array(items),
            other => other.to_string(),
        };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    fn to_sql_checked(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(kind, out)
    }
}

/// Whether a text in it contains NUL, which PostgreSQL cannot store.
pub(crate) fn contains_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(contains_nul),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key.contains('\0') || contains_nul(value))
        }
        _ => false,
    }
}

fn is_json(kind: &Type) -> bool {
    *kind == Type::JSON || *kind == Type::JSONB
}

/// Formats an integer: JSON Schema accepts 5.0 as one, PostgreSQL does not.
fn format_integer(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(real) if number.is_f64() && real.fract() == 0.0 && real.abs() < 1e15 => {
            format!("{real:.0}")
        }
        _ => number.to_string(),
    }
}

/// An array in PostgreSQL's syntax.
fn format_array(items: &[Value]) -> String {
    let item = |item: &Value| match item {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        Value::Number(number) => format_integer(number),
        other => other.to_string(),
    };
    format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn written(value: &Value, kind: &Type) -> Option<String> {
        let mut out = BytesMut::new();
        match TextParameter(value).to_sql(kind, &mut out).unwrap() {
            IsNull::Yes => None,
            IsNull::No => Some(String::from_utf8(out.to_vec()).unwrap()),
        }
    }

    #[test]
    fn values_are_written_for_the_type_of_the_parameter() {
        assert_eq!(written(&json!(null), &Type::TEXT), None);
        assert_eq!(written(&json!("a\"b"), &Type::TEXT).unwrap(), "a\"b");
        assert_eq!(written(&json!("a\"b"), &Type::JSONB).unwrap(), r#""a\"b""#);
        assert_eq!(written(&json!(5.0), &Type::INT4).unwrap(), "5");
        assert_eq!(written(&json!(true), &Type::BOOL).unwrap(), "true");
        assert_eq!(
            written(&json!(["a", "b\"\\", null]), &Type::TEXT_ARRAY).unwrap(),
            r#"{"a","b\"\\",NULL}"#
        );
        assert_eq!(written(&json!([1, "a"]), &Type::JSON).unwrap(), r#"[1,"a"]"#);
        assert!(contains_nul(&json!({ "a": ["\0"] })) && !contains_nul(&json!(["0", 0])));
    }
}
