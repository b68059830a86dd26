//! Prompts: definitions and rendered results.

use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

use super::{Content, Role};

/// The definition of a prompt (2025-11-25 schema, `Prompt`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// Its name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<PromptArgument>,
}

/// An argument of a prompt (2025-11-25 schema, `PromptArgument`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptArgument {
    /// Its name.
    pub name: String,
    /// Its meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether it is required.
    pub required: bool,
}

/// A rendered prompt (2025-11-25 schema, `GetPromptResult`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptResult {
    /// Its purpose.
    pub description: Option<String>,
    /// The messages.
    pub messages: Vec<PromptMessage>,
}

/// One message of a rendered prompt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PromptMessage {
    /// The author's role.
    pub role: Role,
    /// The content.
    pub content: Content,
}
