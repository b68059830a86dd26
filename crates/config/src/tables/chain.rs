//! The tables of a chain: ready-made layers, the first one outermost.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::enums::{AuditArgumentsChoice, ListKindChoice, RedactScopeChoice};
use crate::tables::script::ScriptTable;

/// The kinds of layers, as they are written.
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

/// One layer of a chain. Layers run in the order in which they are written: the first one is outermost.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(tag = "kind")]
pub enum LayerTable {
    /// Ends calls that take too long.
    Timeout(TimeoutTable),
    /// Tries again what may be tried again.
    Retry(RetryTable),
    /// Lets only so many calls run at once.
    Concurrency(ConcurrencyTable),
    /// Lets only so many calls through in a time.
    RateLimit(RateLimitTable),
    /// Spares a server that fails.
    CircuitBreaker(CircuitBreakerTable),
    /// Keeps results for a while.
    Cache(CacheTable),
    /// Hides what is not to be seen; what is hidden is unknown, but for resources in a dialect that has a code for those
    /// which are denied.
    Filter(FilterTable),
    /// Gives other names.
    Rename(RenameTable),
    /// Changes what tools say of themselves and what they are given.
    Rewrite(RewriteTable),
    /// Takes secrets out of results.
    Redact(RedactTable),
    /// Refuses what is too large.
    SizeLimit(SizeLimitTable),
    /// Writes down who did what.
    Audit(AuditTable),
    /// Withholds tools whose definitions changed until they are approved.
    Pin(PinTable),
    /// Runs functions of a JavaScript file around calls and on what is listed.
    Script(ScriptTable),
}

/// Ends calls that take too long.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeoutTable {
    /// How long a call may take, in seconds.
    pub seconds: Ranged<1, 86_400>,
    /// Only calls of these names, in which `*` stands for any characters. Default: every call.
    pub names: Option<Vec<Spanned<String>>>,
}

/// Tries again what may be tried again: lists, reads, prompts, and tools that say that calling them twice is the
/// same as once.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryTable {
    /// How often a call is tried in all. Default: 3.
    pub attempts: Option<Ranged<2, 10>>,
    /// How long to wait before the second attempt, in milliseconds; before each further one twice as long. Default:
    /// 100.
    pub delay_ms: Option<Spanned<Ranged<1, 60_000>>>,
    /// The longest wait between two attempts, in milliseconds. Default: 5000. A server that wants to be left alone for
    /// longer is not tried again.
    pub max_delay_ms: Option<Ranged<1, 600_000>>,
    /// Tools that may be called twice although they do not say so, by names in which `*` stands for any characters.
    pub names: Option<Vec<Spanned<String>>>,
}

/// Lets only so many calls run at once; further ones wait in the order in which they came.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConcurrencyTable {
    /// How many calls run at once.
    pub calls: Ranged<1, 100_000>,
    /// How many may wait; further ones are refused. Default: 100.
    pub queue: Option<Ranged<0, 100_000>>,
    /// How long a call waits before it is refused, in seconds. Default: 30.
    pub wait_seconds: Option<Ranged<1, 3600>>,
}

/// Lets only so many calls through in a time. A caller that was quiet may use its whole share at once.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateLimitTable {
    /// How many calls each caller has in the time.
    pub principal_calls: Option<Ranged<1, 1_000_000>>,
    /// How many calls all callers have together in the time.
    pub overall_calls: Option<Ranged<1, 100_000_000>>,
    /// The time, in seconds. Default: 60.
    pub seconds: Option<Ranged<1, 86_400>>,
}

/// Spares a server that fails: after some failures in a row its calls are refused at once, until one that is let
/// through to try succeeds.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CircuitBreakerTable {
    /// How many failures in a row open it. Only failures of the server itself count, not those of tools. Default: 5.
    pub failures: Option<Ranged<1, 1000>>,
    /// How long it stays open before a call is let through to try, in seconds. Default: 30.
    pub open_seconds: Option<Ranged<1, 3600>>,
}

/// Keeps results of reads, prompts and tools that change nothing, never longer than the server behind says. Each caller has
/// its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheTable {
    /// How long a result is kept, in seconds.
    pub ttl_seconds: Ranged<1, 86_400>,
    /// How much is kept in all, in bytes. Default: 16777216.
    pub max_bytes: Option<Ranged<1024, 4_294_967_296>>,
    /// Tools whose results are kept although they do not say that they change nothing, by names in which `*` stands
    /// for any characters.
    pub names: Option<Vec<Spanned<String>>>,
    /// Whether all callers share what is kept: only where it is the same for all of them. Default: false.
    pub public: Option<bool>,
}

/// Hides what is not to be seen. What is hidden is not listed, and asking for it is asking for something unknown.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilterTable {
    /// What it looks at. Default: `["tools"]`.
    pub kinds: Option<Vec<Spanned<ListKindChoice>>>,
    /// Only these, by names or uris in which `*` stands for any characters. Default: all.
    pub allow: Option<Vec<Spanned<String>>>,
    /// None of these, even if they are allowed.
    pub deny: Option<Vec<Spanned<String>>>,
    /// Only tools that say that they change nothing (true), or only those that do not (false).
    pub read_only: Option<bool>,
    /// Only tools that may destroy something (true), or only those that say that they do not (false).
    pub destructive: Option<bool>,
    /// Only tools for which twice is the same as once (true), or only those for which it is not (false).
    pub idempotent: Option<bool>,
    /// Only tools that reach the outside world (true), or only those that say that they do not (false).
    pub open_world: Option<bool>,
}

/// Gives other names. Two items never get the same one: the second is left out, and the log says so.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameTable {
    /// What gets other names. Default: `["tools"]`.
    pub kinds: Option<Vec<Spanned<ListKindChoice>>>,
    /// New names by old ones.
    pub names: Option<Entries<Spanned<String>>>,
    /// What is taken away from the beginning of every other name that begins with it.
    pub strip: Option<Spanned<String>>,
    /// What is put before every other name, or, with `strip`, before those that it was taken away from.
    pub add: Option<Spanned<String>>,
}

/// Changes what tools say of themselves and what they are given.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RewriteTable {
    /// The changes, by the names of the tools.
    pub tools: Entries<ToolRewriteTable>,
}

/// How one tool is changed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRewriteTable {
    /// Another name for people.
    pub title: Option<Spanned<String>>,
    /// Another description.
    pub description: Option<String>,
    /// Values of arguments that are not given.
    pub defaults: Option<Entries<Spanned<Value>>>,
    /// Arguments that clients neither see nor give, and their values.
    pub fixed: Option<Entries<Spanned<Value>>>,
}

/// Takes secrets out of the texts and the data of results and arguments.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedactTable {
    /// Regular expressions of what is taken out of texts.
    pub patterns: Option<Vec<Spanned<String>>>,
    /// Places in structured results and arguments, as JSON pointers such as `/user/email`; `*` stands for any key or
    /// index.
    pub pointers: Option<Vec<Spanned<String>>>,
    /// What stands there instead. Default: `[redacted]`.
    pub replacement: Option<String>,
    /// What they are taken out of. Default: `results`.
    pub from: Option<RedactScopeChoice>,
}

/// Refuses what is too large.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SizeLimitTable {
    /// The largest arguments of a call, in bytes. Default: no limit but that of messages.
    pub arguments: Option<Ranged<1, 268_435_456>>,
    /// The largest result, in bytes. Default: no limit.
    pub results: Option<Ranged<1, 268_435_456>>,
}

/// Writes one line of JSON for each call into a file that only grows. The lines are written beside the calls, which
/// never wait for them; those that come faster than they can be written are counted and left out.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditTable {
    /// The file. A relative path begins at the folder of this file.
    pub file: Spanned<String>,
    /// How large the file becomes before a new one is begun, in bytes. Default: 104857600.
    pub max_bytes: Option<Ranged<4096, 1_099_511_627_776>>,
    /// How many older files are kept. Default: 5.
    pub keep: Option<Ranged<0, 1000>>,
    /// What is written of the arguments. Default: `digest`.
    pub arguments: Option<AuditArgumentsChoice>,
    /// Regular expressions of what is taken out of arguments that are written; only with `arguments = "redacted"`.
    pub patterns: Option<Spanned<Vec<Spanned<String>>>>,
    /// Places that are taken out of arguments that are written, as JSON pointers; only with `arguments = "redacted"`.
    pub pointers: Option<Spanned<Vec<Spanned<String>>>>,
    /// Whether what is written is forced to the disk each time. Otherwise the system decides when, and a power
    /// failure may cost the last lines; an end of the process does not. Default: false.
    pub sync: Option<bool>,
}

/// Withholds tools whose definitions changed until they are approved. A tool that is seen for the first time is
/// trusted.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PinTable {
    /// The file that remembers the definitions. A relative path begins at the folder of this file.
    pub file: Spanned<String>,
}
