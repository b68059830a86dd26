//! Tests of reading SQLite files. The acceptance tests cover PostgreSQL, because they start a server.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::query::Query;
use super::*;
use crate::recipe::template::Template;

fn shop() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.sqlite3");
    let connection = Connection::open(&file).unwrap();
    connection
        .execute_batch(
            "CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, picture BLOB);
             INSERT INTO products VALUES (3, 'tea', 2.5, x'00ff'), (1, 'milk', 1, NULL), (2, 'it''s \"jam\"', NULL, NULL);
             CREATE TABLE notes (text TEXT);",
        )
        .unwrap();
    (folder, file)
}

fn open(file: &Path, limits: DatabaseLimits) -> Database {
    Database::new("shop", DatabaseAddress::Sqlite(file.to_owned()), limits)
}

async fn ask(database: &Database, sql: &str, values: &[Value]) -> Result<Rows, DatabaseError> {
    let query = Query::new(Template::parse(sql).unwrap()).unwrap();
    database.query(&query, values.to_vec(), 10_000).await
}

#[tokio::test]
async fn rows_keep_the_order_of_their_columns_and_the_kinds_of_their_values() {
    let (_folder, file) = shop();
    let database = open(&file, DatabaseLimits::default());
    let rows = ask(&database, "SELECT name, id, price, picture FROM products ORDER BY id", &[])
        .await
        .unwrap();
    assert_eq!(
        rows.rows,
        [
            r#"{"name":"milk","id":1,"price":1.0,"picture":null}"#,
            r#"{"name":"it's \"jam\"","id":2,"price":null,"picture":null}"#,
            r#"{"name":"tea","id":3,"price":2.5,"picture":"\\x00ff"}"#,
        ]
    );
    assert!(!rows.has_more);
}

#[tokio::test]
async fn values_are_bound_and_never_spliced() {
    let (_folder, file) = shop();
    let database = open(&file, DatabaseLimits::default());
    for hostile in ["' OR 1=1 --", "x'; DROP TABLE products; --", "{name}", "?1", "tea\0"] {
        let rows =
            ask(&database, "SELECT * FROM products WHERE name = {name}", &[json!(hostile)]).await;
        assert_eq!(rows.unwrap(), Rows::default(), "{hostile}");
    }
    let sql = "SELECT name FROM products WHERE id IN (SELECT value FROM json_each({ids})) AND {yes} ORDER BY id";
    let rows = ask(&database, sql, &[json!([1, 3.0]), json!(true)]).await.unwrap();
    assert_eq!(rows.rows, [r#"{"name":"milk"}"#, r#"{"name":"tea"}"#]);
    let missing = ask(&database, "SELECT {x} IS NULL AS missing", &[Value::Null]).await.unwrap();
    assert_eq!(missing.rows, [r#"{"missing":1}"#]);
}

#[tokio::test]
async fn nothing_but_reading_is_possible() {
    let (folder, file) = shop();
    let database = open(&file, DatabaseLimits::default());
    let other = folder.path().join("other.sqlite3");
    let attach = format!("ATTACH '{}' AS other", other.display());
    for sql in [
        "DELETE FROM products",
        "DELETE FROM products RETURNING id",
        "WITH gone AS (DELETE FROM products RETURNING *) SELECT * FROM gone",
        "SELECT 1; DELETE FROM products",
        "SELECT 1) AS x; DELETE FROM products; SELECT (1",
        "PRAGMA query_only = off",
        "VACUUM",
        "CREATE TEMP TABLE t (x)",
        "SELECT load_extension('x')",
        attach.as_str(),
    ] {
        let refused = ask(&database, sql, &[]).await;
        assert!(matches!(refused, Err(DatabaseError::QueryRejected(_))), "{sql}: {refused:?}");
    }
    let still = ask(&database, "SELECT count(*) AS n FROM products", &[]).await.unwrap();
    assert_eq!(still.rows, [r#"{"n":3}"#]);
    assert!(!other.exists());
    // Writing fails even though the file itself is writable.
    let connection = sqlite_connection(&file);
    assert!(connection.execute("INSERT INTO notes VALUES ('x')", []).is_err());
}

/// A connection as the pool opens it, without its authorizer: the other restrictions suffice.
fn sqlite_connection(file: &Path) -> Connection {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    Connection::open_with_flags(file, flags).unwrap()
}

#[tokio::test]
async fn rows_bytes_and_time_have_limits() {
    let (_folder, file) = shop();
    let two = open(
        &file,
        DatabaseLimits {
            max_rows: 2,
            query_timeout: Duration::from_millis(300),
            ..DatabaseLimits::default()
        },
    );
    let rows = ask(&two, "SELECT id FROM products ORDER BY id", &[]).await.unwrap();
    assert_eq!((rows.rows.len(), rows.has_more), (2, true));
    let query =
        Query::new(Template::parse("SELECT name FROM products ORDER BY id").unwrap()).unwrap();
    let rows = two.query(&query, Vec::new(), 20).await.unwrap();
    assert_eq!((rows.rows.len(), rows.has_more), (1, true));
    assert_eq!(two.query(&query, Vec::new(), 5).await, Err(DatabaseError::TooLarge(5)));
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    assert_eq!(ask(&two, endless, &[]).await, Err(DatabaseError::TimedOut));
    assert!(ask(&two, "SELECT 1 AS one", &[]).await.is_ok(), "the connection stays usable");
}

#[tokio::test]
async fn an_abandoned_query_frees_its_connection() {
    let (_folder, file) = shop();
    let one = open(
        &file,
        DatabaseLimits {
            max_connections: 1,
            query_timeout: Duration::from_secs(3600),
            ..DatabaseLimits::default()
        },
    );
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let gone = tokio::time::timeout(Duration::from_millis(50), ask(&one, endless, &[])).await;
    assert!(gone.is_err());
    assert!(ask(&one, "SELECT 1 AS one", &[]).await.is_ok());
}

#[tokio::test]
async fn a_missing_file_is_not_created_and_is_found_once_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("late.sqlite3");
    let database = open(&file, DatabaseLimits::default());
    assert!(matches!(ask(&database, "SELECT 1", &[]).await, Err(DatabaseError::Unavailable(_))));
    assert!(!file.exists());
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    assert!(ask(&database, "SELECT * FROM t", &[]).await.is_ok());
    std::fs::write(folder.path().join("text.db"), "no database".repeat(100)).unwrap();
    let text = open(&folder.path().join("text.db"), DatabaseLimits::default());
    assert!(matches!(
        ask(&text, "SELECT 1 FROM sqlite_schema", &[]).await,
        Err(DatabaseError::Unavailable(_))
    ));
}

#[tokio::test]
async fn tables_are_listed_with_their_columns_in_pages() {
    let (_folder, file) = shop();
    let database = open(&file, DatabaseLimits { max_rows: 2, ..DatabaseLimits::default() });
    let page = database.table("products", 1).await.unwrap().unwrap().to_json("products", 1, "next");
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!(
        page["columns"][0],
        json!({"name": "id", "type": "INTEGER", "required": false, "key": true})
    );
    assert_eq!(page["columns"][1]["required"], true);
    assert_eq!(
        (&page["rows"][0]["id"], &page["rows"][1]["id"], &page["next"]),
        (&json!(1), &json!(2), &json!("next"))
    );
    let page = database.table("products", 2).await.unwrap().unwrap().to_json("products", 2, "next");
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((page["rows"].as_array().unwrap().len(), &page["next"]), (1, &Value::Null));
    assert!(database.table("nowhere", 1).await.unwrap().is_none());
    assert!(database.table("products\" --", 1).await.unwrap().is_none());
}
