//! What travels in params and results, in the newest revision's shape.
//!
//! Older shapes are made when a message leaves, by rule ([`crate::adapt`]); nothing inside knows them.

mod cache;
mod capabilities;
mod completion;
mod content;
mod definition;
mod definition_check;
mod definition_rules;
mod input_request;
mod input_response_check;
mod items;
mod level;
mod prompts;
mod resources;
mod skills;
mod task;
mod timestamp;
mod tools;
mod upstream_definition;

pub use cache::CacheHints;
pub(crate) use cache::milliseconds;
pub use capabilities::{ClientCapabilities, ServerCapabilities};
pub use completion::{Completion, CompletionRequest, Reference};
pub use content::{Annotations, Content, Contents, Role};
pub use definition::Definition;
pub use definition_check::ExcludedItem;
pub(crate) use definition_check::is_icon_list;
pub use input_request::{InputRequest, KeyedInputRequest};
pub use items::Items;
pub use level::Level;
pub use prompts::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use resources::{Resource, ResourceTemplate};
pub use skills::{SKILLS_EXTENSION, Skill, SkillFile};
pub use task::{TASKS_EXTENSION, Task, TaskOutcome, TaskPreference, TaskState, TaskSupport};
pub use timestamp::format_timestamp;
pub use tools::{Tool, ToolAnnotations, ToolResult};

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::wire::Raw;

/// Who a client or server says it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version; hand-written clients sometimes leave it out.
    #[serde(default)]
    pub version: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where more is said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Its pictures, as it wrote them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
}

/// One of the kinds of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListKind {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Resource templates.
    Templates,
    /// Prompts.
    Prompts,
    /// Skills, of the extension [`SKILLS_EXTENSION`].
    Skills,
}

impl ListKind {
    /// The member of the list result that holds the items.
    pub fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
            Self::Skills => "skills",
        }
    }

    /// The member of an item that it is found by.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Templates | Self::Prompts => "name",
            Self::Resources | Self::Skills => "uri",
        }
    }

    /// The notification that tells of a change. Skills have none of their own: their files are resources.
    pub fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Resources | Self::Templates | Self::Skills => {
                "notifications/resources/list_changed"
            }
            Self::Prompts => "notifications/prompts/list_changed",
        }
    }
}
