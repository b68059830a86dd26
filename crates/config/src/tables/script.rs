//! A JavaScript file, as a layer of a chain or as a tool.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// A JavaScript file whose functions are called. Each call has a world of its own, with the language and nothing else.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptTable {
    /// The file. A relative path begins at the folder of this file. When it changes, the configuration is read again.
    pub file: Spanned<String>,
    /// How long one call may compute, in milliseconds of the processor's time; waiting does not count. Default: 500.
    pub compute_ms: Option<Ranged<1, 60_000>>,
    /// How much memory one call may have, in megabytes. Default: 32.
    pub memory_mb: Option<Ranged<1, 1024>>,
    /// How many calls may be under way at the same time; others wait. Default: 100.
    pub concurrency: Option<Ranged<1, 10_000>>,
}
