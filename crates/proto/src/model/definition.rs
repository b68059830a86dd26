//! An announced item as the bytes that lists are made of.

use alloc::boxed::Box;
use alloc::string::String;

use super::{Prompt, Resource, ResourceTemplate, Skill, TaskSupport, Tool};
use crate::adapt;
use crate::revision::{Rules, Structured, Tasks};

/// A definition encoded once, so that a list of a thousand tools costs a copy and not an encoding.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    pub(super) name: String,
    pub(super) newest: Box<str>,
    /// The text for sessions of the handshake era, where it differs.
    pub(super) handshake: Option<Box<str>>,
    /// The text for revisions without structured results, where it differs.
    pub(super) unstructured: Option<Box<str>>,
    /// The text for revisions whose tools say that they run as tasks, for one that does.
    pub(super) tasked: Option<Box<str>>,
    /// Whether its schema was put right.
    pub(super) mended: bool,
}

/// All that decides which text of a definition a peer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wording {
    tasks: Tasks,
    structured: Structured,
}

impl Wording {
    pub(super) fn of(rules: &Rules) -> Self {
        Self { tasks: rules.tasks, structured: rules.structured }
    }
}

impl Definition {
    /// The name or uri it is found by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether another server wrote its schema as no validator reads it, so that the text has it otherwise.
    pub fn is_mended(&self) -> bool {
        self.mended
    }

    /// The text for a peer with these rules.
    pub fn text(&self, rules: &Rules) -> &str {
        let wording = Wording::of(rules);
        if let (Tasks::Wanted, Some(tasked)) = (wording.tasks, &self.tasked) {
            return tasked;
        }
        let older = match wording.structured {
            Structured::Absent => self.unstructured.as_deref().or(self.handshake.as_deref()),
            Structured::Object => self.handshake.as_deref(),
            Structured::Any => None,
        };
        older.unwrap_or(&self.newest)
    }

    /// The same item under this name, with each of its texts changed alike; `None` if one cannot be.
    pub fn changed(&self, name: &str, change: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let change = |text: &str| change(text).map(String::into_boxed_str);
        let older = |text: &Option<Box<str>>| {
            text.as_deref().map(change).map_or(Some(None), |it| it.map(Some))
        };
        Some(Self {
            name: name.into(),
            newest: change(&self.newest)?,
            handshake: older(&self.handshake)?,
            unstructured: older(&self.unstructured)?,
            tasked: older(&self.tasked)?,
            mended: self.mended,
        })
    }

    fn of<T: serde::Serialize>(name: &str, item: &T) -> Self {
        Self {
            name: name.into(),
            newest: encode(item),
            handshake: None,
            unstructured: None,
            tasked: None,
            mended: false,
        }
    }
}

impl Definition {
    /// A tool that runs as a task: only some revisions have a member for that.
    fn tasked(tool: &Tool) -> Self {
        let plain = Tool { task_support: TaskSupport::Forbidden, ..tool.clone() };
        let lowered = adapt::lower_tool(tool);
        Self { tasked: Some(encode(lowered.as_ref().unwrap_or(tool))), ..Self::from(&plain) }
    }
}

impl From<&Tool> for Definition {
    fn from(tool: &Tool) -> Self {
        if tool.task_support != TaskSupport::Forbidden {
            return Self::tasked(tool);
        }
        let mut definition = Self::of(&tool.name, tool);
        let lowered = adapt::lower_tool(tool);
        definition.handshake = lowered.as_ref().map(encode);
        if tool.output_schema.is_some() {
            let mut plain = lowered.unwrap_or_else(|| tool.clone());
            plain.output_schema = None;
            definition.unstructured = Some(encode(&plain));
        }
        definition
    }
}

impl From<&Resource> for Definition {
    fn from(resource: &Resource) -> Self {
        Self::of(&resource.uri, resource)
    }
}

impl From<&ResourceTemplate> for Definition {
    fn from(template: &ResourceTemplate) -> Self {
        Self::of(&template.name, template)
    }
}

impl From<&Prompt> for Definition {
    fn from(prompt: &Prompt) -> Self {
        Self::of(&prompt.name, prompt)
    }
}

impl From<&Skill> for Definition {
    fn from(skill: &Skill) -> Self {
        Self::of(&skill.uri, skill)
    }
}

fn encode<T: serde::Serialize>(item: &T) -> Box<str> {
    crate::wire::Raw::of(item).as_str().into()
}
