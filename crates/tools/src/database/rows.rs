//! Rows as JSON, with columns in order and within limits.

use creole::proto::wire::{Raw, hex, quote};

/// The rows of a result.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    /// Each row as a JSON object.
    pub(crate) rows: Vec<String>,
    /// Whether there are more rows.
    pub(crate) has_more: bool,
}

impl Rows {
    /// All rows as a JSON array.
    pub(crate) fn to_json_array(&self) -> String {
        format!("[{}]", self.rows.join(","))
    }

    /// The rows and whether there are more, as one object.
    pub(crate) fn to_json(&self) -> Option<Raw> {
        Raw::parse(&format!(r#"{{"rows":{},"more":{}}}"#, self.to_json_array(), self.has_more)).ok()
    }
}

/// A text as JSON.
pub(crate) fn quote_json(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    quote(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// Bytes as text, in PostgreSQL's hexadecimal format.
pub(crate) fn to_postgres_hex(bytes: &[u8]) -> String {
    String::from("\\x") + &hex(bytes)
}
