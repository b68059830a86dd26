//! The tables `[folders.NAME]`, `[prompts.NAME]` and `[resources.NAME]`: files as resources and prompts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// A folder whose files are resources, at `folder://NAME/path`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderTable {
    /// The folder. A relative path begins at the folder of this file.
    pub path: Spanned<String>,
    /// A name for people, where clients show one.
    pub title: Option<Spanned<String>>,
    /// What is in it.
    pub description: Option<String>,
    /// Patterns of the files that are shown, such as `*.md` or `guide/**`: `*` stands for anything within a name, `**`
    /// for any number of folders; one without a slash is about names at any depth. Default: all.
    pub include: Option<Vec<Spanned<String>>>,
    /// Patterns of the files and folders that are not shown. Default: none.
    pub exclude: Option<Vec<Spanned<String>>>,
    /// Whether names that begin with a dot are shown. Default: false.
    pub hidden: Option<bool>,
    /// Whether files are shown that have another name as well (hard links): the other may be outside of the folder.
    /// Default: false.
    pub hard_links: Option<bool>,
    /// How many folders may be inside of one another. Default: 16.
    pub max_depth: Option<Ranged<0, 64>>,
    /// How many files are listed; others can only be read. Default: 10000.
    pub max_files: Option<Ranged<1, 100_000>>,
    /// How many bytes a file may have to be read. Default: 8388608.
    pub max_file_bytes: Option<Ranged<1, 67_108_864>>,
    /// Whether clients are told of changes. Default: true.
    pub watch: Option<bool>,
    /// Whether it is offered at all. Default: true.
    pub enabled: Option<bool>,
}

/// A folder of Markdown files, each of which is a prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptsTable {
    /// The folder. A relative path begins at the folder of this file.
    pub path: Spanned<String>,
    /// What the names of its prompts begin with. Default: nothing; a prompt has the name of its file.
    pub prefix: Option<Spanned<String>>,
    /// Whether changes show without a restart. Default: true.
    pub watch: Option<bool>,
    /// Whether it is offered at all. Default: true.
    pub enabled: Option<bool>,
}

/// A resource, or with variables in its uri a family of them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceTable {
    /// Where it is, such as `acme://rules`; with `{name}`, which stands for one part, or `{+name}`, which stands for any
    /// rest, it is a family, and its text is a template with these names.
    pub uri: Spanned<String>,
    /// The file that it is. A relative path begins at the folder of this file. Either this or `text`.
    pub file: Option<Spanned<String>>,
    /// The text that it is. Either this or `file`.
    pub text: Option<String>,
    /// A name for people, where clients show one.
    pub title: Option<Spanned<String>>,
    /// What it is.
    pub description: Option<String>,
    /// Its media type. Default: told by the end of the file's name.
    pub mime_type: Option<Spanned<String>>,
    /// Values that are proposed for the names in `uri`.
    pub values: Option<BTreeMap<String, Vec<String>>>,
    /// Whether it is offered at all. Default: true.
    pub enabled: Option<bool>,
}
