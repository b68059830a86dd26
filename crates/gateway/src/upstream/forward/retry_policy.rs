//! Decides which calls may be repeated when the effect of the first attempt is unknown.

use creole::proto::operation::Operation;

use crate::plan::layer::LayerPlan;
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
        let layers = self.settings.plan.as_ref().map_or(&[][..], |plan| &plan.chain);
        // If a layer renames items, the names in the retry layer may differ from the names here.
        let is_renamed = layers.iter().any(|layer| matches!(layer, LayerPlan::Rename(_)));
        let retried = layers.iter().any(|layer| match layer {
            LayerPlan::Retry(retry) => {
                retry.names.contains(tool) || self.tool_index().is_idempotent(tool)
            }
            _ => false,
        });
        retried && !is_renamed
    }
}
