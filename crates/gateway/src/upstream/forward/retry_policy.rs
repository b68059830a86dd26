//! Decides which calls may be repeated when the effect of the first attempt is unknown.

use creole::proto::operation::Operation;

use crate::layers::NamePatterns;
use crate::upstream::Upstream;

impl Upstream {
    /// Whether an operation may be repeated: it only reads, or a retry layer may repeat it too.
    pub(crate) fn may_repeat(&self, operation: &Operation) -> bool {
        match operation {
            Operation::ReadResource { .. } | Operation::GetPrompt { .. } => true,
            Operation::CallTool { name, .. } => self.is_retry_allowed(name),
            _ => false,
        }
    }

    /// Whether the configuration allows a tool to be repeated: by its name, or because its hints are trusted.
    fn is_retry_allowed(&self, tool: &str) -> bool {
        let is_idempotent = || self.tool_index().is_idempotent(tool);
        let covers = |names: &NamePatterns| names.contains(tool) || is_idempotent();
        self.settings.retried_tools.iter().any(covers)
    }
}
