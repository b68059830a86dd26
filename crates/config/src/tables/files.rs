//! The tables `[folders.NAME]`, `[prompts.NAME]` and `[resources.NAME]`: files as resources and prompts.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// A folder whose files are resources, at `folder://NAME/path`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderTable {
    /// The folder. A relative path is resolved against the folder of this file.
    pub path: Spanned<String>,
    /// The display name, for clients that show one.
    pub title: Option<Spanned<String>>,
    /// The description of the folder's contents.
    pub description: Option<String>,
    /// Patterns of the files that are offered, such as `*.md` or `guide/**`. `*` matches any characters within a name,
    /// and `**` matches any number of folders. A pattern without a slash matches names at any depth. Default: all.
    pub include: Option<Vec<Spanned<String>>>,
    /// Patterns of the files and folders that are not offered. Default: none.
    pub exclude: Option<Vec<Spanned<String>>>,
    /// Whether files and folders whose names begin with a dot are offered. Default: false.
    pub hidden: Option<bool>,
    /// Whether files with several names (hard links) are offered. Another name of such a file may be outside of the
    /// folder. Default: false.
    pub hard_links: Option<bool>,
    /// The maximum depth of nested folders. Deeper files are not offered. Default: 16.
    pub max_depth: Option<Ranged<0, 64>>,
    /// The maximum number of listed files. Further files are not listed but can be read. Default: 10000.
    pub max_files: Option<Ranged<1, 100_000>>,
    /// The maximum size of a file, in bytes. Larger files cannot be read. Default: 8388608.
    pub max_file_bytes: Option<Ranged<1, 67_108_864>>,
    /// Whether clients are notified of changes. Default: true.
    pub watch: Option<bool>,
    /// Whether the folder is offered. Default: true.
    pub enabled: Option<bool>,
}

/// A folder of Markdown files. Each file is a prompt.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptsTable {
    /// The folder. A relative path is resolved against the folder of this file.
    pub path: Spanned<String>,
    /// The prefix of the prompts' names. A prompt is named after its file. Default: none.
    pub prefix: Option<Spanned<String>>,
    /// Whether changes apply without a restart. Default: true.
    pub watch: Option<bool>,
    /// Whether the prompts are offered. Default: true.
    pub enabled: Option<bool>,
}

/// A resource, or a resource template if its URI contains variables.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourceTable {
    /// The URI, such as `acme://rules`. With variables it is a URI template: `{name}` matches one segment, and
    /// `{+name}` matches the rest. The text is then a template that can use the variables.
    pub uri: Spanned<String>,
    /// The file with the contents. A relative path is resolved against the folder of this file. Use either this or
    /// `text`.
    pub file: Option<Spanned<String>>,
    /// The contents as text. Use either this or `file`.
    pub text: Option<String>,
    /// The display name, for clients that show one.
    pub title: Option<Spanned<String>>,
    /// The description of the resource.
    pub description: Option<String>,
    /// The media type. Default: derived from the file name extension.
    pub mime_type: Option<Spanned<String>>,
    /// The completion values of each variable in `uri`.
    pub values: Option<BTreeMap<String, Vec<String>>>,
    /// Whether the resource is offered. Default: true.
    pub enabled: Option<bool>,
}
