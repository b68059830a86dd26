//! What became of the operations of a document.

use std::collections::BTreeMap;
use std::fmt;

/// What became of the operations of a document, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiReport {
    /// Where the service is.
    pub base: String,
    /// The operations.
    pub operations: Vec<OperationOutcome>,
}

/// What became of one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationOutcome {
    /// Its method and path.
    pub operation: String,
    /// The tool that it became, or why it did not become one.
    pub outcome: Result<GeneratedTool, String>,
}

/// The tool that an operation became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedTool {
    /// Its name.
    pub tool: String,
    /// Why it is not called as the document calls it.
    pub rename_reason: Option<String>,
    /// What else there is to know.
    pub notes: Vec<String>,
}

impl ApiReport {
    /// How many operations became tools.
    pub fn tool_count(&self) -> usize {
        self.operations.iter().filter(|fate| fate.outcome.is_ok()).count()
    }

    /// Why operations did not become tools, and how many for each reason, the most frequent first.
    pub fn excluded_reasons(&self) -> Vec<(&str, usize)> {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for fate in &self.operations {
            if let Err(why) = &fate.outcome {
                *reasons.entry(why).or_default() += 1;
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
        write!(formatter, "{kept} tools of {all} operations, asks {host}")
    }
}

impl fmt::Display for OperationOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Err(why) => write!(formatter, "- {}: {why}", self.operation),
            Ok(kept) => {
                write!(formatter, "+ {}: {}", self.operation, kept.tool)?;
                let notes = kept.rename_reason.iter().chain(&kept.notes).map(String::as_str);
                match notes.collect::<Vec<_>>().join("; ") {
                    notes if notes.is_empty() => Ok(()),
                    notes => write!(formatter, " ({notes})"),
                }
            }
        }
    }
}
