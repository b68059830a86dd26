//! Definitions: the encoded JSON of the items in lists.

mod check;
mod rules;
mod upstream;

pub use check::ExcludedItem;
pub(crate) use check::is_icon_list;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use once_cell::race::OnceBox;

use super::{Prompt, Resource, ResourceTemplate, Skill, TaskSupport, Tool};
use crate::model::adapt;
use crate::revision::{Rules, StructuredContent, TaskModel};
use crate::wire::Raw;

/// A definition that is encoded once, so that a list of a thousand tools costs a copy and not an encoding. It is
/// encoded on first use, because most servers are started for a few calls.
#[derive(Clone, Default)]
pub struct Definition {
    pub(super) name: String,
    /// Creates the texts, unless they were given.
    encoder: Option<Arc<Encoder>>,
    texts: OnceBox<DefinitionTexts>,
    /// Whether its schema was repaired.
    is_repaired: bool,
}

type Encoder = dyn Fn() -> DefinitionTexts + Send + Sync;

/// The texts of one definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DefinitionTexts {
    pub(super) newest: Box<str>,
    /// The text for sessions of the handshake era, if it differs.
    pub(super) handshake: Option<Box<str>>,
    /// The text for revisions without structured results, if it differs.
    pub(super) unstructured: Option<Box<str>>,
    /// The text for revisions whose tools announce task support, for a tool that has it
    /// (2025-11-25 schema, `ToolExecution`).
    pub(super) with_task_support: Option<Box<str>>,
}

/// The properties of a revision that select the text of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextVariant {
    tasks: TaskModel,
    structured: StructuredContent,
}

impl TextVariant {
    pub(super) fn for_rules(rules: &Rules) -> Self {
        Self { tasks: rules.tasks, structured: rules.structured_content }
    }
}

impl Definition {
    /// A definition with given texts.
    pub(super) fn from_texts(name: String, texts: DefinitionTexts, mended: bool) -> Self {
        Self {
            name,
            encoder: None,
            texts: OnceBox::with_value(Box::new(texts)),
            is_repaired: mended,
        }
    }

    /// A definition whose texts are encoded on first use.
    fn lazy(name: &str, encoder: impl Fn() -> DefinitionTexts + Send + Sync + 'static) -> Self {
        let encoder: Arc<Encoder> = Arc::new(encoder);
        Self { name: name.into(), encoder: Some(encoder), ..Self::default() }
    }

    /// The name or URI that identifies it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the upstream's schema was invalid for validators, so that the text contains a repaired one.
    pub fn is_repaired(&self) -> bool {
        self.is_repaired
    }

    /// The text for a peer with these rules.
    pub fn text(&self, rules: &Rules) -> &str {
        self.texts().for_variant(TextVariant::for_rules(rules))
    }

    /// The same item under another name, with `change` applied to each text; `None` if one change fails.
    pub fn map_texts(&self, name: &str, change: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let change = |text: &str| change(text).map(String::into_boxed_str);
        let older = |text: &Option<Box<str>>| {
            text.as_deref().map(change).map_or(Some(None), |it| it.map(Some))
        };
        let texts = self.texts();
        let changed = DefinitionTexts {
            newest: change(&texts.newest)?,
            handshake: older(&texts.handshake)?,
            unstructured: older(&texts.unstructured)?,
            with_task_support: older(&texts.with_task_support)?,
        };
        Some(Self::from_texts(name.into(), changed, self.is_repaired))
    }

    pub(super) fn texts(&self) -> &DefinitionTexts {
        self.texts.get_or_init(|| {
            let encoded = self.encoder.as_ref().map(|encode| encode());
            Box::new(encoded.unwrap_or_default())
        })
    }
}

impl DefinitionTexts {
    /// The same text for all revisions.
    pub(super) fn uniform(newest: Box<str>) -> Self {
        Self { newest, ..Self::default() }
    }

    fn for_variant(&self, variant: TextVariant) -> &str {
        if let (TaskModel::ClientRequested, Some(tasked)) = (variant.tasks, &self.with_task_support)
        {
            return tasked;
        }
        let older = match variant.structured {
            StructuredContent::Absent => self.unstructured.as_deref().or(self.handshake.as_deref()),
            StructuredContent::Object => self.handshake.as_deref(),
            StructuredContent::Any => None,
        };
        older.unwrap_or(&self.newest)
    }

    fn of_tool(tool: &Tool) -> Self {
        if tool.task_support != TaskSupport::Forbidden {
            return Self::of_task(tool);
        }
        let lowered = adapt::lower_tool(tool);
        let (newest, handshake) = (encode(tool), lowered.as_ref().map(encode));
        let unstructured = tool.output_schema.is_some().then(|| {
            let mut plain = lowered.unwrap_or_else(|| tool.clone());
            plain.output_schema = None;
            encode(&plain)
        });
        Self { newest, handshake, unstructured, with_task_support: None }
    }

    /// The texts of a tool that runs as a task. Only some revisions have a member for that.
    fn of_task(tool: &Tool) -> Self {
        let plain = Tool { task_support: TaskSupport::Forbidden, ..tool.clone() };
        let lowered = adapt::lower_tool(tool);
        let tasked = Some(encode(lowered.as_ref().unwrap_or(tool)));
        Self { with_task_support: tasked, ..Self::of_tool(&plain) }
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.texts();
        formatter
            .debug_struct("Definition")
            .field("name", &self.name)
            .field("texts", texts)
            .finish()
    }
}

impl PartialEq for Definition {
    /// The time of encoding does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.is_repaired == other.is_repaired
            && self.texts() == other.texts()
    }
}

impl From<&Tool> for Definition {
    fn from(tool: &Tool) -> Self {
        Self::from(&Arc::new(tool.clone()))
    }
}

impl From<&Arc<Tool>> for Definition {
    fn from(tool: &Arc<Tool>) -> Self {
        let shared = Arc::clone(tool);
        Self::lazy(&tool.name, move || DefinitionTexts::of_tool(&compact(&shared)))
    }
}

impl From<&Resource> for Definition {
    fn from(resource: &Resource) -> Self {
        Self::from_texts(resource.uri.clone(), DefinitionTexts::uniform(encode(resource)), false)
    }
}

impl From<&ResourceTemplate> for Definition {
    fn from(template: &ResourceTemplate) -> Self {
        Self::from_texts(template.name.clone(), DefinitionTexts::uniform(encode(template)), false)
    }
}

impl From<&Prompt> for Definition {
    fn from(prompt: &Prompt) -> Self {
        Self::from_texts(prompt.name.clone(), DefinitionTexts::uniform(encode(prompt)), false)
    }
}

impl From<&Skill> for Definition {
    fn from(skill: &Skill) -> Self {
        Self::from_texts(skill.uri.clone(), DefinitionTexts::uniform(encode(skill)), false)
    }
}

/// The tool without the whitespace in its schemas, because lists are sent often.
fn compact(tool: &Tool) -> Tool {
    let input_schema = tool.input_schema.compact();
    let output_schema = tool.output_schema.as_ref().map(Raw::compact);
    Tool { input_schema, output_schema, ..tool.clone() }
}

fn encode<T: serde::Serialize>(item: &T) -> Box<str> {
    Raw::from_value(item).as_str().into()
}
