//! Definitions of resources and resource templates, and the entries of skills: folders of resources that instruct a
//! model.

use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

use super::Annotations;
use crate::wire::Raw;

/// The definition of a resource (2025-11-25 schema, `Resource`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its URI.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// Its size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Hints for clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
    /// `_meta`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The definition of a resource template (2025-11-25 schema, `ResourceTemplate`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The RFC 6570 template of the URIs.
    pub uri_template: String,
    /// Its name.
    pub name: String,
    /// The display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The media type, if all resources of the template share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// The name of the skills extension (SEP-2640). Citations of it name the sections of its specification,
/// `specification/stable/skills`.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The entry of one skill: its front matter and its files (SEP-2640, skill entries).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Skill {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The front matter of its `SKILL.md` as a JSON object, with every member that the author wrote.
    #[serde(rename = "frontmatter")]
    pub front_matter: Raw,
    /// Every file of the skill once, including `SKILL.md`.
    #[serde(rename = "resources")]
    pub files: Vec<SkillFile>,
}

/// A file in the entry of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkillFile {
    /// Its URI.
    pub uri: String,
    /// `sha256:` and the digest of its bytes in lower-case hexadecimal digits.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
}
