//! The data types of params and results, in the shape of the newest revision.
//!
//! The encoder converts them to older shapes by rule ([`adapt`]). No other code knows the older shapes.

pub mod adapt;
mod capabilities;
mod completion;
mod content;
mod definition;
mod input_request;
mod input_response_check;
mod items;
mod level;
mod prompts;
mod relayed_result;
mod resources;
mod task;
mod tools;

pub use capabilities::{
    CLIENT_CREDENTIALS_EXTENSION, ClientCapabilities, ENTERPRISE_AUTHORIZATION_EXTENSION,
    ServerCapabilities, TASKS_EXTENSION, is_connection_extension,
};
pub use completion::{Completion, CompletionRequest, Reference};
pub use content::{Annotations, Content, Contents, Role};
pub(crate) use definition::is_icon_list;
pub use definition::{Definition, ExcludedItem};
pub use input_request::{InputRequest, KeyedInputRequest};
pub use items::Items;
pub use level::Level;
pub use prompts::{Prompt, PromptArgument, PromptMessage, PromptResult};
pub use relayed_result::{RelayedKind, RelayedResult};
pub use resources::{Resource, ResourceTemplate, SKILLS_EXTENSION, Skill, SkillFile};
pub use task::{Task, TaskOutcome, TaskPreference, TaskState, format_timestamp};
pub use tools::{TaskSupport, Tool, ToolAnnotations, ToolResult};

use alloc::string::String;
use serde::{Deserialize, Serialize};

use crate::revision::Rules;
use crate::wire::{Object, Raw};

/// The identity of a client or server (2026-07-28 schema, `Implementation`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// The programmatic name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The version. Hand-written clients sometimes omit it.
    #[serde(default)]
    pub version: String,
    /// A description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// A URL with more information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
    /// Its icons as received (2026-07-28 schema, `Icon`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub icons: Option<Raw>,
}

/// A kind of list.
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
    /// Skills, of the extension [`SKILLS_EXTENSION`] (SEP-2640, listing skills).
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

    /// The member that identifies an item.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Templates | Self::Prompts => "name",
            Self::Resources | Self::Skills => "uri",
        }
    }

    /// The notification about a change. Skills have none of their own, because their files are resources.
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

/// The lifetime and the scope of a cached result (2026-07-28 schema, `CacheableResult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheHints {
    /// The time in milliseconds for which the result is fresh (`ttlMs`).
    pub ttl_ms: u64,
    /// Whether the result may be shared between users (`cacheScope`).
    pub public: bool,
}

impl CacheHints {
    /// Neither cached nor shared.
    pub const NONE: Self = Self { ttl_ms: 0, public: false };

    /// Reads the cache hints of a result. A result without hints is not cacheable.
    pub fn read(result: Object<'_>, rules: &Rules) -> Self {
        if !rules.cache_hints {
            return Self::NONE;
        }
        let ttl_ms = result.get("ttlMs").and_then(milliseconds).unwrap_or(0);
        let scope = result.string("cacheScope").ok().flatten();
        Self { ttl_ms, public: scope.as_deref() == Some("public") }
    }
}

/// A number of milliseconds, in any JSON spelling.
pub(crate) fn milliseconds(raw: &str) -> Option<u64> {
    if let Ok(number) = raw.parse() {
        return Some(number);
    }
    let number: f64 = raw.parse().ok()?;
    // The cast saturates, which is an acceptable number of milliseconds.
    (number >= 0.0).then_some(number as u64)
}
