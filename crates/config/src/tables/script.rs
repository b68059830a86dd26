//! The keys of a JavaScript file, which is a layer of a chain or a tool.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// A JavaScript file whose functions are called. Each call has its own context, with the language and no other API.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptTable {
    /// The JavaScript file. A relative path is resolved against the folder of this file. The configuration is reloaded
    /// when the file changes.
    pub file: Spanned<String>,
    /// The maximum processor time of one call, in milliseconds. Time spent waiting does not count. The call then fails.
    /// Default: 500.
    pub compute_ms: Option<Ranged<1, 60_000>>,
    /// The maximum memory of one call, in megabytes. The call then fails. Default: 32.
    pub memory_mb: Option<Ranged<1, 1024>>,
    /// The maximum number of concurrent calls. Further calls wait. Default: 100.
    pub concurrency: Option<Ranged<1, 10_000>>,
}
