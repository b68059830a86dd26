//! Skills: how the extension of SEP-2640 tells of a folder of files that teaches a model something.

use alloc::string::String;
use alloc::vec::Vec;
use serde::Serialize;

use crate::wire::Raw;

/// The name of the extension.
pub const SKILLS_EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The entry of one skill: its front matter, and every file that belongs to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Skill {
    /// Where its `SKILL.md` is.
    pub uri: String,
    /// The front matter of its `SKILL.md` as a JSON object, with every member that its author wrote.
    #[serde(rename = "frontmatter")]
    pub front_matter: Raw,
    /// Every file of the skill once, `SKILL.md` among them.
    #[serde(rename = "resources")]
    pub files: Vec<SkillFile>,
}

/// A file of a skill, as its entry tells of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkillFile {
    /// Where it is.
    pub uri: String,
    /// `sha256:` and the digest of its bytes in small hexadecimal letters.
    pub digest: String,
    /// How many bytes it has.
    pub size: u64,
}
