//! Tools: their definitions and their results.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::Content;
use crate::wire::Raw;

/// The definition of a tool (2025-11-25 schema, `Tool`).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tool {
    /// The programmatic name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Raw,
    /// The JSON Schema of its structured result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Raw>,
    /// Hints about its behaviour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
    /// Its task support.
    #[serde(rename = "execution", skip_serializing_if = "TaskSupport::is_default")]
    pub task_support: TaskSupport,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Hints about a tool's behaviour. Clients do not decide by those of untrusted servers
/// (2025-11-25 schema, `ToolAnnotations`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// The display name, for clients that do not read the tool's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It modifies nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may perform destructive updates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Repeated calls with the same arguments have no additional effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It interacts with external systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A tool result (2025-11-25 schema, `CallToolResult`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Content blocks for the model.
    pub content: Vec<Content>,
    /// The structured result, any JSON value.
    pub structured: Option<Raw>,
    /// Whether the tool failed.
    pub is_error: bool,
    /// `_meta`.
    pub meta: Option<Raw>,
}

impl ToolResult {
    /// A result of one text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Content::text(text)], ..Self::default() }
    }

    /// A failure with one text block.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// A structured result, repeated as text for clients that read only text
    /// (2025-06-18 server/tools, structured content).
    pub fn structured(data: Raw) -> Self {
        Self { structured: Some(data.clone()), ..Self::text(data.as_str()) }
    }
}

/// The task support of a tool (2025-11-25 schema, `ToolExecution`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskSupport {
    /// It never runs as a task.
    #[default]
    Forbidden,
    /// It runs as a task if the client supports tasks, otherwise as a normal call.
    Optional,
    /// It always runs as a task.
    Required,
}

impl TaskSupport {
    /// The value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }

    /// Whether it is the default on the wire.
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Serialize for TaskSupport {
    /// Serialises it as the tool's member `execution`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut execution = serializer.serialize_map(Some(1))?;
        execution.serialize_entry("taskSupport", self.as_str())?;
        execution.end()
    }
}
