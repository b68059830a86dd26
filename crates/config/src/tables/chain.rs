//! The tables of a chain: the built-in layers, the first one outermost.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::audit::AuditTable;
use crate::tables::enums::{ListKindChoice, RedactScopeChoice};
use crate::tables::tools::ScriptTable;

/// The values of `kind` in a layer's table.
pub(crate) const LAYER_KINDS: [&str; 14] = [
    "timeout",
    "retry",
    "concurrency",
    "rate-limit",
    "circuit-breaker",
    "cache",
    "filter",
    "rename",
    "rewrite",
    "redact",
    "size-limit",
    "audit",
    "pin",
    "script",
];

/// One layer of a chain. Layers run in the order in which they are written: the first one is the outermost.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub enum LayerTable {
    /// Ends calls that take too long.
    Timeout(TimeoutTable),
    /// Repeats failed calls that are safe to repeat.
    Retry(RetryTable),
    /// Limits the number of concurrent calls.
    Concurrency(ConcurrencyTable),
    /// Limits the number of calls per period.
    RateLimit(RateLimitTable),
    /// Refuses calls while the upstream is failing.
    CircuitBreaker(CircuitBreakerTable),
    /// Caches results.
    Cache(CacheTable),
    /// Hides items. A hidden item is not listed, and a request for it fails as for an unknown item. A dialect may have
    /// a separate error code for hidden resources.
    Filter(FilterTable),
    /// Renames items.
    Rename(RenameTable),
    /// Changes the definitions and the arguments of tools.
    Rewrite(RewriteTable),
    /// Removes secrets from results and arguments.
    Redact(RedactTable),
    /// Refuses arguments and results that are too large.
    SizeLimit(SizeLimitTable),
    /// Writes an audit log of all calls.
    Audit(AuditTable),
    /// Withholds tools whose definitions changed, until they are approved.
    Pin(PinTable),
    /// Runs functions of a JavaScript file on calls and on definitions.
    Script(ScriptTable),
}

/// Ends calls that take too long.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeoutTable {
    /// The maximum time of a call, in seconds. The call then fails with a `timeout` error.
    pub seconds: Ranged<1, 86_400>,
    /// The calls that the layer applies to, by name. `*` matches any characters. Default: every call.
    pub names: Option<Vec<Spanned<String>>>,
}

/// Repeats failed calls that are safe to repeat: lists, reads, prompts, and tools that are marked as idempotent.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryTable {
    /// The maximum number of attempts, including the first one. Default: 3.
    pub attempts: Option<Ranged<2, 10>>,
    /// The delay before the second attempt, in milliseconds. It doubles for each further attempt. Default: 100.
    pub delay_ms: Option<Spanned<Ranged<1, 60_000>>>,
    /// The maximum delay between two attempts, in milliseconds. If the upstream requests a longer delay, the call is
    /// not repeated. Default: 5000.
    pub max_delay_ms: Option<Ranged<1, 600_000>>,
    /// Tools that may be repeated although they are not marked as idempotent, by name. `*` matches any characters.
    pub names: Option<Vec<Spanned<String>>>,
}

/// Limits the number of concurrent calls. Further calls wait in the order of their arrival.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyTable {
    /// The maximum number of concurrent calls.
    pub calls: Ranged<1, 100_000>,
    /// The maximum number of waiting calls. Further calls fail with a `busy` error. Default: 100.
    pub queue: Option<Ranged<0, 100_000>>,
    /// The maximum time that a call waits, in seconds. The call then fails with a `busy` error. Default: 30.
    pub wait_seconds: Option<Ranged<1, 3600>>,
}

/// Limits the number of calls per period. The allowance refills evenly, and an idle caller may use all of it at once.
/// Calls above the limit fail with a `busy` error.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimitTable {
    /// The maximum number of calls of each caller per period.
    pub principal_calls: Option<Ranged<1, 1_000_000>>,
    /// The maximum number of calls of all callers together per period.
    pub overall_calls: Option<Ranged<1, 100_000_000>>,
    /// The length of the period, in seconds. Default: 60.
    pub seconds: Option<Ranged<1, 86_400>>,
    /// Whether the limit holds for all processes that share `[state]` together. Each call then costs two operations on
    /// the state. While the state fails, each process applies the limit alone. Default: false.
    pub shared: Option<bool>,
}

/// Refuses calls while the upstream is failing. After several consecutive failures the breaker opens and calls fail at
/// once. After a time it lets one trial call through. The breaker closes when a trial call succeeds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CircuitBreakerTable {
    /// The number of consecutive failures that opens the breaker. Only failures of the upstream count, not those of its
    /// tools. Default: 5.
    pub failures: Option<Ranged<1, 1000>>,
    /// The time that the breaker stays open before a trial call, in seconds. Default: 30.
    pub open_seconds: Option<Ranged<1, 3600>>,
}

/// Caches results of reads, prompts and tools that are marked as read-only, never longer than the upstream allows. Each
/// caller has its own cache entries.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// The time that a result stays in the cache, in seconds.
    pub ttl_seconds: Ranged<1, 86_400>,
    /// The maximum total size of the cache, in bytes. Default: 16777216.
    pub max_bytes: Option<Ranged<1024, 4_294_967_296>>,
    /// Tools whose results are cached although they are not marked as read-only, by name. `*` matches any characters.
    pub names: Option<Vec<Spanned<String>>>,
    /// Whether all callers share the cache entries. Use it only if the results are the same for every caller. Default:
    /// false.
    pub public: Option<bool>,
}

/// Hides items. A hidden item is not listed, and a request for it fails as for an unknown item.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterTable {
    /// The kinds of items that the filter applies to. Default: `["tools"]`.
    pub kinds: Option<Vec<Spanned<ListKindChoice>>>,
    /// The items that stay visible, by name or URI. `*` matches any characters. Default: all.
    pub allow: Option<Vec<Spanned<String>>>,
    /// The items that are hidden, even if `allow` matches them.
    pub deny: Option<Vec<Spanned<String>>>,
    /// If true, only tools that are marked as read-only stay visible. If false, only the others.
    pub read_only: Option<bool>,
    /// If true, only tools that may be destructive stay visible. If false, only tools that are marked as not
    /// destructive.
    pub destructive: Option<bool>,
    /// If true, only tools that are marked as idempotent stay visible. If false, only the others.
    pub idempotent: Option<bool>,
    /// If true, only tools that may interact with external systems stay visible. If false, only tools that are marked
    /// as not doing so.
    pub open_world: Option<bool>,
}

/// Renames items. If two items would get the same name, the second one is excluded and the log reports it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameTable {
    /// The kinds of items that are renamed. Default: `["tools"]`.
    pub kinds: Option<Vec<Spanned<ListKindChoice>>>,
    /// The new name of each item, by its old name.
    pub names: Option<Entries<Spanned<String>>>,
    /// The prefix that is removed from all names that are not in `names` and begin with it.
    pub strip: Option<Spanned<String>>,
    /// The prefix that is added to all names that are not in `names`. With `strip`, it is added only to the names whose
    /// prefix was removed.
    pub add: Option<Spanned<String>>,
}

/// Changes the definitions and the arguments of tools.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewriteTable {
    /// The changes of each tool, by its name.
    pub tools: Entries<ToolRewriteTable>,
}

/// The changes of one tool.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRewriteTable {
    /// The new display name.
    pub title: Option<Spanned<String>>,
    /// The new description.
    pub description: Option<String>,
    /// Values of arguments that a call omits.
    pub defaults: Option<Entries<Spanned<Value>>>,
    /// Arguments with fixed values. Clients do not see them and cannot set them.
    pub fixed: Option<Entries<Spanned<Value>>>,
}

/// Removes secrets from the texts and the data of results and arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedactTable {
    /// Regular expressions. Every match in a text is replaced.
    pub patterns: Option<Vec<Spanned<String>>>,
    /// JSON pointers into structured results and arguments, such as `/user/email`. The values there are replaced. `*`
    /// matches any key or index.
    pub pointers: Option<Vec<Spanned<String>>>,
    /// The replacement text. Default: `[redacted]`.
    pub replacement: Option<String>,
    /// What is redacted. Default: `results`.
    pub from: Option<RedactScopeChoice>,
}

/// Refuses arguments and results that are too large.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeLimitTable {
    /// The maximum size of the arguments of a call, in bytes. Default: only the limit of messages.
    pub arguments: Option<Ranged<1, 268_435_456>>,
    /// The maximum size of a result, in bytes. Default: no limit.
    pub results: Option<Ranged<1, 268_435_456>>,
}

/// Withholds tools whose definitions changed, until `creole approve` approves them. A tool that is seen for the first
/// time is trusted. Needs `file` or `shared = true`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinTable {
    /// The file that stores the approved definitions. A relative path is resolved against the folder of this file.
    pub file: Option<Spanned<String>>,
    /// Whether the approved definitions are in `[state]`, for all replicas together. While the state fails, known
    /// decisions hold, and new and changed tools are withheld. All definitions of a server together may have 1 MiB.
    /// Default: false.
    pub shared: Option<Spanned<bool>>,
}
