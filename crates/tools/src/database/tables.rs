//! Readable tables: their columns, and their rows in pages.

use std::time::Duration;

use serde_json::{Value, json};

use super::query::{Rows, quote_json};
use super::{Database, DatabaseAddress, DatabaseError, ResultLimits};

/// Maximum size of a page, in bytes.
const PAGE_BYTES: usize = 1 << 20;
/// Maximum number of columns that are listed.
const MAX_COLUMNS: usize = 1000;

/// A page of a table.
pub(crate) struct TablePage {
    /// Its columns, as a JSON array.
    columns: String,
    rows: Rows,
}

impl TablePage {
    /// The page as JSON; `next` is the URI of the next page, if any.
    pub(crate) fn to_json(&self, name: &str, page: u32, next: &str) -> String {
        let next = if self.rows.has_more { quote_json(next) } else { "null".to_owned() };
        format!(
            r#"{{"table":{},"columns":{},"page":{page},"rows":{},"next":{next}}}"#,
            quote_json(name),
            self.columns,
            self.rows.to_json_array(),
        )
    }
}

impl Database {
    /// A page of a table, counted from one; `None` if the table does not exist.
    pub(crate) async fn table(
        &self,
        name: &str,
        page: u32,
    ) -> Result<Option<TablePage>, DatabaseError> {
        let limits = self.limits();
        let columns = self.columns(name, limits.query_timeout).await?;
        if columns.rows.is_empty() {
            return Ok(None);
        }
        let keys: Vec<String> =
            columns.rows.iter().filter_map(|column| primary_key_column(column)).collect();
        let order = match keys.is_empty() {
            true => String::new(),
            false => format!(" ORDER BY {}", keys.join(", ")),
        };
        let skipped = (page.saturating_sub(1) as usize).saturating_mul(limits.max_rows);
        // A page that exceeds the limits would lose rows, so it fails instead.
        let max = limits.max_rows + 1;
        let sql = format!("SELECT * FROM {}{order} LIMIT {max} OFFSET {skipped}", identifier(name));
        let room = ResultLimits {
            max_rows: limits.max_rows,
            max_bytes: PAGE_BYTES,
            timeout: limits.query_timeout,
        };
        let rows = self.rows(sql, Vec::new(), room).await?;
        if rows.has_more && rows.rows.len() < limits.max_rows {
            let reason =
                format!("a page of the table has more than {PAGE_BYTES} bytes; lower `max_rows`");
            return Err(DatabaseError::QueryRejected(reason));
        }
        Ok(Some(TablePage { columns: columns.to_json_array(), rows }))
    }

    async fn columns(&self, name: &str, time: Duration) -> Result<Rows, DatabaseError> {
        let sql = match self.address() {
            DatabaseAddress::Sqlite(_) => {
                "SELECT name, type, \"notnull\" <> 0 AS required, pk <> 0 AS key FROM pragma_table_info(?1)"
            }
            DatabaseAddress::Postgres(_) => {
                "SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
                    coalesce(a.attnum = ANY (i.indkey), false) AS key
                 FROM pg_attribute a
                 LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary
                 WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
            }
        };
        let request = match self.address() {
            DatabaseAddress::Sqlite(_) => json!(name),
            DatabaseAddress::Postgres(_) => json!(identifier(name)),
        };
        let limits = ResultLimits { max_rows: MAX_COLUMNS, max_bytes: PAGE_BYTES, timeout: time };
        let mut columns = self.rows(sql.to_owned(), vec![request], limits).await?;
        columns.rows.iter_mut().for_each(|column| *column = with_boolean_flags(column));
        Ok(columns)
    }
}

/// The quoted name of a column that is part of the primary key.
fn primary_key_column(column: &str) -> Option<String> {
    let column: Value = serde_json::from_str(column).ok()?;
    let name = column["name"].as_str().filter(|_| column["key"] == true)?;
    Some(identifier_part(name))
}

/// Converts SQLite's numeric flags to booleans.
fn with_boolean_flags(column: &str) -> String {
    column
        .replace(r#""required":1"#, r#""required":true"#)
        .replace(r#""required":0"#, r#""required":false"#)
        .replace(r#""key":1}"#, r#""key":true}"#)
        .replace(r#""key":0}"#, r#""key":false}"#)
}

/// A table's name as a quoted SQL identifier. The part before a dot is the schema.
fn identifier(name: &str) -> String {
    name.split('.').map(identifier_part).collect::<Vec<_>>().join(".")
}

fn identifier_part(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
