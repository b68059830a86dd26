//! The report on the operations of a document.

use std::collections::BTreeMap;
use std::fmt;

/// The outcome of each operation of a document, ordered by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiReport {
    /// The base URL of the service.
    pub base: String,
    /// The operations.
    pub operations: Vec<OperationOutcome>,
}

/// The outcome of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationOutcome {
    /// Its method and path.
    pub operation: String,
    /// Its tool, or the reason why it has none.
    pub outcome: Result<GeneratedTool, String>,
}

/// The tool of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedTool {
    /// Its name.
    pub tool: String,
    /// The reason why its name differs from the document's.
    pub rename_reason: Option<String>,
    /// Further notes.
    pub notes: Vec<String>,
}

impl ApiReport {
    /// Number of operations that became tools.
    pub fn tool_count(&self) -> usize {
        self.operations.iter().filter(|outcome| outcome.outcome.is_ok()).count()
    }

    /// The reasons for excluding operations, with the number of operations each, most frequent first.
    pub fn excluded_reasons(&self) -> Vec<(&str, usize)> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for outcome in &self.operations {
            if let Err(reason) = &outcome.outcome {
                *reasons.entry(reason).or_default() += 1;
            }
        }
        let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        reasons
    }
}

impl fmt::Display for ApiReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.base.split('/').nth(2).unwrap_or_default();
        let (kept, all) = (self.tool_count(), self.operations.len());
        write!(formatter, "{kept} tools from {all} operations, server {host}")
    }
}

impl fmt::Display for OperationOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Err(reason) => write!(formatter, "- {}: {reason}", self.operation),
            Ok(tool) => {
                write!(formatter, "+ {}: {}", self.operation, tool.tool)?;
                let notes = tool.rename_reason.iter().chain(&tool.notes).map(String::as_str);
                match notes.collect::<Vec<_>>().join("; ") {
                    notes if notes.is_empty() => Ok(()),
                    notes => write!(formatter, " ({notes})"),
                }
            }
        }
    }
}
