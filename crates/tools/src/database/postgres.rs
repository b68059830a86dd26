//! PostgreSQL: a few connections, each made when it is needed and thrown away when in doubt.

use std::error::Error;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type};
use tokio_postgres::{Client, Config};

use super::address::Server;
use super::encrypted::Way;
use super::rows::Rows;
use super::{Room, Trouble};

/// Connections to one server.
#[derive(Debug)]
pub(crate) struct Pool {
    config: Config,
    way: Way,
    places: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Client>>>,
    /// What each connection is told first.
    greeting: &'static str,
}

impl Pool {
    /// Connections to this server, at most so many. None is made yet.
    pub(crate) fn new(server: &Server, connections: usize, greeting: &'static str) -> Self {
        let places = Arc::new(Semaphore::new(connections));
        let way = Way::new(server.privacy());
        Self { config: server.config(), way, places, idle: Arc::default(), greeting }
    }

    /// A connection for the caller alone. One that was idle and has been lost since is not given out.
    pub(crate) async fn lease(&self) -> Result<Lease, Trouble> {
        let closed = |_| Trouble::Unavailable("it is closed".to_owned());
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(closed)?;
        let kept = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.retain(|client| !client.is_closed());
            idle.pop()
        };
        let is_fresh = kept.is_none();
        let client = match kept {
            Some(client) => client,
            None => self.connect().await?,
        };
        let (idle, way) = (Arc::clone(&self.idle), self.way.clone());
        Ok(Lease { client: Some(client), idle, way, is_done: false, is_fresh, _place: place })
    }

    async fn connect(&self) -> Result<Client, Trouble> {
        let failed = |error: tokio_postgres::Error| match Trouble::postgres(&error) {
            // What a server says before a query is about who connects.
            Trouble::Refused(why) => Trouble::Unavailable(why),
            other => other,
        };
        let (client, connection) = self.config.connect(self.way.clone()).await.map_err(failed)?;
        // It ends with the client; what it ends with, the query that it served is told as well.
        tokio::spawn(async move { drop(connection.await) });
        client.batch_execute(self.greeting).await.map_err(failed)?;
        Ok(client)
    }
}

/// A connection in use. It goes back only if its work was done; otherwise what it may still be doing is cancelled.
pub(crate) struct Lease {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
    /// How what it may still be doing is cancelled.
    way: Way,
    is_done: bool,
    is_fresh: bool,
    _place: OwnedSemaphorePermit,
}

impl Lease {
    /// That the work is done and nothing is left open.
    pub(crate) fn done(mut self) {
        self.is_done = true;
    }
}

impl Deref for Lease {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.client.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        if self.is_done && !client.is_closed() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (query, way) = (client.cancel_token(), self.way.clone());
            runtime.spawn(async move { drop(query.cancel_query(way).await) });
        }
    }
}

/// Has the server prepare a query, without running it.
pub(super) async fn prepare(pool: &Pool, sql: &str) -> Result<(), Trouble> {
    let lease = pool.lease().await?;
    // As a part of another one it has to be one reading statement.
    let framed = format!("SELECT * FROM (\n{sql}\n) AS query");
    lease.prepare(&framed).await.map_err(|error| Trouble::postgres(&error))?;
    lease.done();
    Ok(())
}

/// The rows of a reading query. One that found its connection lost is asked once more on another: reading twice is the
/// same as once.
pub(super) async fn rows(
    pool: &Pool,
    sql: &str,
    values: &[Value],
    room: Room,
) -> Result<Rows, Trouble> {
    if values.iter().any(has_zero) {
        let why = "PostgreSQL knows no text with the character U+0000";
        return Err(Trouble::Refused(why.to_owned()));
    }
    let lease = pool.lease().await?;
    let is_fresh = lease.is_fresh;
    match read(lease, sql, values, room).await {
        Err(Trouble::Unavailable(_)) if !is_fresh => {
            read(pool.lease().await?, sql, values, room).await
        }
        rows => rows,
    }
}

async fn read(lease: Lease, sql: &str, values: &[Value], room: Room) -> Result<Rows, Trouble> {
    let time = room.time.as_millis();
    let begin = format!("BEGIN TRANSACTION READ ONLY; SET LOCAL statement_timeout = {time}");
    let failed = |error| Trouble::postgres(&error);
    let work = async {
        lease.batch_execute(&begin).await.map_err(failed)?;
        let found = texts(&lease, sql, values, room).await;
        lease.batch_execute("ROLLBACK").await.map_err(failed)?;
        found
    };
    // The server stops the query by itself; this is for one that does not answer any more.
    let found = tokio::time::timeout(room.time * 2, work).await.map_err(|_| Trouble::Late)?;
    if !matches!(found, Err(Trouble::Unavailable(_))) {
        lease.done();
    }
    fitting(found?, room)
}

/// Each row as JSON text, or nothing where it does not fit any more: the server counts, so that nothing too large is sent.
async fn texts(
    client: &Client,
    sql: &str,
    values: &[Value],
    room: Room,
) -> Result<Vec<Option<String>>, Trouble> {
    let failed = |error| Trouble::postgres(&error);
    let (rows, bytes) = (room.rows + 1, room.bytes);
    // As a part of another one it has to be one reading statement.
    let whole = format!(
        "SELECT CASE WHEN size <= {bytes} THEN line END FROM (
            SELECT line, sum(octet_length(line)) OVER (ROWS UNBOUNDED PRECEDING) AS size FROM (
                SELECT row_to_json(query)::text AS line FROM (\n{sql}\n) AS query LIMIT {rows}
            ) AS lines
        ) AS sizes"
    );
    let statement = client.prepare(&whole).await.map_err(failed)?;
    if statement.params().len() != values.len() {
        return Err(Trouble::Refused("a placeholder of it is no parameter".to_owned()));
    }
    let given: Vec<Given<'_>> = values.iter().map(Given).collect();
    let given: Vec<&(dyn ToSql + Sync)> = given.iter().map(|it| it as _).collect();
    let found = client.query(&statement, &given).await.map_err(failed)?;
    found.iter().map(|row| row.try_get(0).map_err(failed)).collect()
}

fn fitting(texts: Vec<Option<String>>, room: Room) -> Result<Rows, Trouble> {
    let count = texts.len();
    if let Some(None) = texts.first() {
        return Err(Trouble::TooLarge(room.bytes));
    }
    let rows: Vec<String> = texts.into_iter().map_while(|text| text).take(room.rows).collect();
    Ok(Rows { more: rows.len() < count, rows })
}

/// A value of a call, as the text that the server reads for whatever type the parameter has.
#[derive(Debug)]
pub(crate) struct Given<'a>(pub(crate) &'a Value);

impl ToSql for Given<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let text = match self.0 {
            Value::Null => return Ok(IsNull::Yes),
            Value::String(text) if is_json(kind) => Value::from(text.as_str()).to_string(),
            Value::String(text) => text.clone(),
            Value::Number(number) => whole(number),
            Value::Array(items) if matches!(kind.kind(), Kind::Array(_)) => list(items),
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

/// Whether a text in it has the one character that PostgreSQL keeps in no text.
pub(crate) fn has_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_zero),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key.contains('\0') || has_zero(value))
        }
        _ => false,
    }
}

fn is_json(kind: &Type) -> bool {
    *kind == Type::JSON || *kind == Type::JSONB
}

/// Schemas call 5.0 an integer; PostgreSQL does not.
fn whole(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(real) if number.is_f64() && real.fract() == 0.0 && real.abs() < 1e15 => {
            format!("{real:.0}")
        }
        _ => number.to_string(),
    }
}

/// A list as PostgreSQL writes arrays.
fn list(items: &[Value]) -> String {
    let item = |item: &Value| match item {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => {
            format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        Value::Number(number) => whole(number),
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
        match Given(value).to_sql(kind, &mut out).unwrap() {
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
        assert!(has_zero(&json!({ "a": ["\0"] })) && !has_zero(&json!(["0", 0])));
    }
}
