//! Which calls may be made a second time when nobody can tell what became of the first.

use creole::proto::operation::Operation;

use crate::plan::layer::LayerPlan;
use crate::upstream::Upstream;

impl Upstream {
    /// Whether an operation may be done again: it only reads, or a layer that tries again may do so too.
    pub(crate) fn may_repeat(&self, operation: &Operation) -> bool {
        match operation {
            Operation::ReadResource { .. } | Operation::GetPrompt { .. } => true,
            Operation::CallTool { name, .. } => self.is_retry_allowed(name),
            _ => false,
        }
    }

    /// Whether whoever runs this lets the tool be tried again: by its name, or by believing what it says of itself.
    fn is_retry_allowed(&self, tool: &str) -> bool {
        let layers = self.settings.plan.as_ref().map_or(&[][..], |plan| &plan.chain);
        // Where names are changed, those of the layer may be others' names here.
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
