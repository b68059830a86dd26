//! The kinds of items that rules are about.

/// A kind of item that rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A tool.
    Tool,
    /// A resource, by its URI or URI template.
    Resource,
    /// A prompt.
    Prompt,
    /// A task, by the tool that made it.
    Task,
}

impl TargetKind {
    /// The variable of expressions that items of this kind have.
    pub(crate) fn root(self) -> &'static str {
        match self {
            Self::Tool | Self::Task => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }
}
