//! The behaviour hints of tools, recorded from their definitions.

use creole::internal::sync::RwLock;
use std::collections::HashSet;

use creole_proto::model::{Definition, ListKind};
use creole_proto::wire::Object;

use crate::layers::definitions::json_edit::newest_json;

/// The hints of one tool, with the defaults of the specification (schema, `ToolAnnotations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hints {
    pub(crate) read_only: bool,
    pub(crate) destructive: bool,
    pub(crate) idempotent: bool,
    pub(crate) open_world: bool,
}

impl Hints {
    /// The hints in a tool's definition.
    pub(crate) fn of(tool: &Definition) -> Self {
        let message =
            Object::new(newest_json(tool)).and_then(|tool| tool.object("annotations").ok()?);
        let hint = |key, default_value| {
            message.and_then(|message| message.bool(key).ok().flatten()).unwrap_or(default_value)
        };
        let read_only = hint("readOnlyHint", false);
        Self {
            read_only,
            destructive: !read_only && hint("destructiveHint", true),
            idempotent: read_only || hint("idempotentHint", false),
            open_world: hint("openWorldHint", true),
        }
    }
}

/// The tools whose hints satisfy a condition.
#[derive(Debug, Default)]
pub(crate) struct HintedTools(RwLock<HashSet<String>>);

impl HintedTools {
    /// Records whether the condition holds for a new definition.
    pub(crate) fn record(
        &self,
        kind: ListKind,
        item: &Definition,
        holds: impl FnOnce(Hints) -> bool,
    ) {
        if kind != ListKind::Tools {
            return;
        }
        let holds = holds(Hints::of(item));
        let mut known = self.0.write();
        if holds {
            known.insert(item.name().to_owned());
        } else {
            known.remove(item.name());
        }
    }

    /// Whether the condition holds for the tool.
    pub(crate) fn contains(&self, tool: &str) -> bool {
        self.0.read().contains(tool)
    }
}
