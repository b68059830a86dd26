//! Tools that run a database query.

use creole::{Schema, ToolError, ToolResult};
use serde_json::{Value, json};

use super::argument::ArgumentValues;
use super::tool_result;
use crate::database::Database;
use crate::database::query::Query;

/// A tool that runs a database query.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryRecipe {
    /// The database.
    pub database: Database,
    /// The query.
    pub query: Query,
}

impl QueryRecipe {
    /// The schema of every result.
    pub fn output_schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "rows": { "type": "array", "items": { "type": "object" }, "description": "The rows, as objects with column names as keys" },
                "more": { "type": "boolean", "description": "Whether the result has more rows" },
            },
            "required": ["rows", "more"],
        })
    }

    /// Runs the query. An absent argument is `NULL`.
    pub(super) async fn call(
        &self,
        values: &ArgumentValues<'_>,
        max_length: usize,
        output: Option<&Schema>,
    ) -> Result<ToolResult, ToolError> {
        let value = |name: &String| values.get(name).cloned().unwrap_or_default();
        let bound = self.query.names().iter().map(value).collect();
        let asked = self.database.query(&self.query, bound, max_length).await;
        let rows = asked.map_err(|error| error.into_tool_error(self.database.name()))?;
        let Some(data) = rows.to_json() else {
            let description = "the result cannot be converted to JSON: two columns have the same name, \
                or a value is nested too deep; rename columns with `AS`";
            return Err(ToolError::failed(description));
        };
        if output.is_some() {
            tool_result::structured_result(&data.decode()?, output)?;
        }
        Ok(ToolResult::structured(data))
    }
}
