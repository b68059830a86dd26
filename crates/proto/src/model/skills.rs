//! Skills: the entries of the extension SEP-2640 for folders of files that instruct a model.
//!
//! Citations of SEP-2640 name the sections of the extension's specification, `specification/stable/skills`.

use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

use crate::wire::Raw;

/// The name of the extension.
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
