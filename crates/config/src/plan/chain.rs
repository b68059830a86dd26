//! Resolves the tables of a chain to layers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use creole_proto::model::ListKind;
use creole_proto::wire::Raw;
use creole_tools::script::{Function, Script, ScriptLimits};
use serde_json::Value;

use crate::plan::layer::LayerPlan;
use crate::plan::pins::PinPlan;
use crate::plan::redaction::{PatternList, REPLACEMENT, RedactPlan, patterns, pointers};
use crate::plan::{audit, to_u32};
use crate::plan::{count, file, label, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::chain::{
    CacheTable, FilterTable, LayerTable, PinTable, RateLimitTable, RedactTable, RenameTable,
    RetryTable, RewriteTable, ToolRewriteTable,
};
use crate::tables::enums::{ListKindChoice, RedactScopeChoice};
use crate::tables::tools::ScriptTable;
use creole_gateway::layers::{
    BreakerSettings, CacheSettings, ConcurrencySettings, FilterSettings, NamePatterns,
    RateSettings, RedactScope, RenameSettings, RetrySettings, Rewrite, SizeLimit, Timeout,
    ToolRewrite,
};

/// The maximum length of a pattern, in characters.
const MAX_PATTERN: usize = 1000;
/// The maximum length of a tool's new name, in characters (2025-11-25 server/tools, tool names).
const MAX_NAME: usize = 128;

type LayerTables = Option<Vec<Spanned<LayerTable>>>;

/// The layers of a chain, outermost first.
pub(crate) fn resolve(tables: LayerTables, folder: &Path) -> Result<Vec<LayerPlan>, ConfigProblem> {
    let layer = |table: Spanned<LayerTable>| {
        let span = table.span;
        layer(table.value, folder).map_err(|problem| problem.or_at(span))
    };
    tables.unwrap_or_default().into_iter().map(layer).collect()
}

fn layer(table: LayerTable, folder: &Path) -> Result<LayerPlan, ConfigProblem> {
    Ok(match table {
        LayerTable::Timeout(table) => LayerPlan::Timeout(Timeout {
            after: seconds(table.seconds.get()),
            names: names(table.names)?,
        }),
        LayerTable::Retry(table) => LayerPlan::Retry(retry(table)?),
        LayerTable::Concurrency(table) => LayerPlan::Concurrency(ConcurrencySettings {
            calls: count(table.calls.get()),
            queue: table.queue.map_or(100, |queue| count(queue.get())),
            wait: seconds(table.wait_seconds.map_or(30, Ranged::get)),
        }),
        LayerTable::RateLimit(table) => LayerPlan::RateLimit(rate(&table)?),
        LayerTable::CircuitBreaker(table) => LayerPlan::CircuitBreaker(BreakerSettings {
            failures: table.failures.map_or(5, |failures| to_u32(failures.get())),
            open: seconds(table.open_seconds.map_or(30, Ranged::get)),
        }),
        LayerTable::Cache(table) => LayerPlan::Cache(cache(table)?),
        LayerTable::Filter(table) => LayerPlan::Filter(filter(table)?),
        LayerTable::Rename(table) => LayerPlan::Rename(rename(table)?),
        LayerTable::Rewrite(table) => LayerPlan::Rewrite(rewrite(table)?),
        LayerTable::Redact(table) => redact(table)?,
        LayerTable::SizeLimit(table) => {
            let bytes = |max: Option<Ranged<1, 268_435_456>>| max.map(|max| count(max.get()));
            let (arguments, results) = (bytes(table.arguments), bytes(table.results));
            if arguments.is_none() && results.is_none() {
                return Err(empty_layer("set `arguments` or `results`"));
            }
            LayerPlan::SizeLimit(SizeLimit { arguments, results })
        }
        LayerTable::Audit(table) => LayerPlan::Audit(audit::resolve(table)?),
        LayerTable::Pin(table) => LayerPlan::Pin(pin(table)?),
        LayerTable::Script(table) => {
            let wanted = [Function::Metadata, Function::Request];
            LayerPlan::Script(resolve_script(table, &wanted, folder)?)
        }
    })
}

fn empty_layer(help: &str) -> ConfigProblem {
    ConfigProblem::new("this layer does nothing").help(help)
}

fn pin(table: PinTable) -> Result<PinPlan, ConfigProblem> {
    let shared = table.shared.filter(|shared| shared.value);
    match (table.file, shared) {
        (Some(path), None) => Ok(PinPlan::File(file("file", path)?)),
        (None, Some(_)) => Ok(PinPlan::Shared),
        (None, None) => Err(empty_layer("set `file` or `shared = true`")),
        (Some(_), Some(shared)) => {
            let problem = ConfigProblem::new("`file` and `shared` exclude each other");
            Err(problem
                .help("the approved definitions are in a file or in `[state]`")
                .at(shared.span))
        }
    }
}

fn retry(table: RetryTable) -> Result<RetrySettings, ConfigProblem> {
    let millis = |number: i64| Duration::from_millis(number.unsigned_abs());
    let max_delay = millis(table.max_delay_ms.map_or(5000, Ranged::get));
    let delay = table.delay_ms.as_ref().map_or(100, |delay| delay.value.get());
    if millis(delay) > max_delay {
        let message =
            format!("`delay_ms` is {delay}, but `max_delay_ms` is {}", max_delay.as_millis());
        let problem = ConfigProblem::new(message).help("`delay_ms` must not exceed `max_delay_ms`");
        return Err(table.delay_ms.map_or(problem.clone(), |value| problem.at(value.span)));
    }
    Ok(RetrySettings {
        attempts: table.attempts.map_or(3, |attempts| to_u32(attempts.get())),
        delay: millis(delay),
        max_delay,
        names: names(table.names)?,
    })
}

fn rate(table: &RateLimitTable) -> Result<RateSettings, ConfigProblem> {
    let settings = RateSettings {
        principal_calls: table.principal_calls.map(|calls| to_u32(calls.get())),
        overall_calls: table.overall_calls.map(|calls| to_u32(calls.get())),
        window: seconds(table.seconds.map_or(60, Ranged::get)),
        is_shared: table.shared.unwrap_or_default(),
    };
    if settings.principal_calls.is_none() && settings.overall_calls.is_none() {
        return Err(empty_layer("set `principal_calls` or `overall_calls`"));
    }
    Ok(settings)
}

fn cache(table: CacheTable) -> Result<CacheSettings, ConfigProblem> {
    Ok(CacheSettings {
        ttl: seconds(table.ttl_seconds.get()),
        max_bytes: table.max_bytes.map_or(16 << 20, |bytes| count(bytes.get())),
        names: names(table.names)?,
        public: table.public.unwrap_or(false),
    })
}

fn filter(table: FilterTable) -> Result<FilterSettings, ConfigProblem> {
    let FilterTable { kinds, allow, deny, read_only, destructive, idempotent, open_world } = table;
    let hints = [read_only, destructive, idempotent, open_world];
    let by_hints = hints.iter().any(Option::is_some);
    if allow.is_none() && deny.is_none() && !by_hints {
        return Err(empty_layer(
            "set `allow`, `deny`, `read_only`, `destructive`, `idempotent` or `open_world`",
        ));
    }
    if allow.as_ref().is_some_and(Vec::is_empty) {
        return Err(ConfigProblem::new("`allow` is empty, so every item would be hidden")
            .help("list the allowed names, or remove `allow`"));
    }
    let places = kinds.clone();
    let kinds = self::kinds(kinds);
    if by_hints && !kinds.contains(&ListKind::Tools) {
        let problem = ConfigProblem::new(
            "only tools have hints, and `kinds` of this layer does not include tools",
        );
        let problem = problem.help("add \"tools\" to `kinds`");
        let first = places.into_iter().flatten().next();
        return Err(first.map_or(problem.clone(), |kind| problem.at(kind.span)));
    }
    let (allow, deny) = (names(allow)?, names(deny)?);
    Ok(FilterSettings { kinds, allow, deny, read_only, destructive, idempotent, open_world })
}

fn kinds(values: Option<Vec<Spanned<ListKindChoice>>>) -> Vec<ListKind> {
    match values {
        Some(kinds) => kinds.into_iter().map(|kind| kind.value.into()).collect(),
        None => vec![ListKind::Tools],
    }
}

fn rename(table: RenameTable) -> Result<RenameSettings, ConfigProblem> {
    for Spanned { value, span } in table.kinds.iter().flatten() {
        if !matches!(value, ListKindChoice::Tools | ListKindChoice::Prompts) {
            let description = "only tools and prompts can be renamed";
            return Err(ConfigProblem::new(description).help("remove it").at(span.clone()));
        }
    }
    let mut names = BTreeMap::new();
    for (old, new) in table.names.map(|names| names.0).unwrap_or_default() {
        if names.values().any(|other| *other == new.value) {
            let message = format!("two items would have the name `{}`", new.value);
            return Err(ConfigProblem::new(message).help("choose different names").at(new.span));
        }
        names.insert(old.value, item_name("names", new)?);
    }
    let part = |key: &str, item: Option<Spanned<String>>| match item {
        Some(item) if item.value.is_empty() => Ok(String::new()),
        Some(item) => item_name(key, item),
        None => Ok(String::new()),
    };
    let (strip, add) = (part("strip", table.strip)?, part("add", table.add)?);
    if names.is_empty() && strip == add {
        return Err(empty_layer("set `names`, `strip` or `add`"));
    }
    Ok(RenameSettings { kinds: kinds(table.kinds), names, strip, add })
}

/// The name of a tool or a prompt, or a part of one.
fn item_name(key: &str, item: Spanned<String>) -> Result<String, ConfigProblem> {
    let Spanned { value, span } = item;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    if value.is_empty() || value.len() > MAX_NAME || !value.bytes().all(is_allowed) {
        let message = format!("invalid name `{value}` in `{key}`");
        let help = format!("use at most {MAX_NAME} letters, digits, `_`, `-`, `.` or `/`");
        return Err(ConfigProblem::new(message).help(help).at(span));
    }
    Ok(value)
}

fn rewrite(table: RewriteTable) -> Result<Rewrite, ConfigProblem> {
    let mut tools = BTreeMap::new();
    for (name, table) in table.tools.0 {
        tools.insert(name.value, tool_rewrite(table).map_err(|problem| problem.or_at(name.span))?);
    }
    Ok(Rewrite { tools })
}

fn tool_rewrite(table: ToolRewriteTable) -> Result<ToolRewrite, ConfigProblem> {
    let ToolRewriteTable { title, description, defaults, fixed } = table;
    let changed = ToolRewrite {
        title: label("title", title)?,
        description,
        defaults: values(defaults)?,
        fixed: values(fixed)?,
    };
    if let Some(name) = changed.fixed.keys().find(|name| changed.defaults.contains_key(*name)) {
        let message = format!("the argument `{name}` is in both `defaults` and `fixed`");
        return Err(ConfigProblem::new(message).help("remove it from one of them"));
    }
    if changed == ToolRewrite::default() {
        return Err(empty_layer("set `title`, `description`, `defaults` or `fixed`"));
    }
    Ok(changed)
}

fn values(
    entries: Option<Entries<Spanned<Value>>>,
) -> Result<BTreeMap<String, Raw>, ConfigProblem> {
    let mut values = BTreeMap::new();
    for (name, Spanned { value, span }) in entries.map(|it| it.0).unwrap_or_default() {
        if has_date(&value) {
            let message = format!("`{}` is a TOML date, and JSON has no dates", name.value);
            return Err(ConfigProblem::new(message).help("write it as a string").at(span));
        }
        values.insert(name.value, Raw::from_value(&value));
    }
    Ok(values)
}

/// Whether a value is or contains a date, which the TOML reader represents as a table with a special key.
fn has_date(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| key.starts_with("$__toml_private") || has_date(member)),
        Value::Array(items) => items.iter().any(has_date),
        _ => false,
    }
}

fn redact(table: RedactTable) -> Result<LayerPlan, ConfigProblem> {
    let plan = RedactPlan {
        patterns: patterns(table.patterns)?,
        pointers: pointers(table.pointers)?,
        replacement: table.replacement.unwrap_or_else(|| REPLACEMENT.to_owned()),
    };
    if plan.patterns.is_empty() && plan.pointers.is_empty() {
        return Err(empty_layer("set `patterns` or `pointers`"));
    }
    let from = match table.from.unwrap_or(RedactScopeChoice::Results) {
        RedactScopeChoice::Results => RedactScope::Results,
        RedactScopeChoice::Arguments => RedactScope::Arguments,
        RedactScopeChoice::Both => RedactScope::Both,
    };
    Ok(LayerPlan::Redact(plan, from))
}

/// Checks the patterns of names.
fn names(values: PatternList) -> Result<NamePatterns, ConfigProblem> {
    let mut patterns = Vec::new();
    for Spanned { value, span } in values.unwrap_or_default() {
        let problem = if value.is_empty() {
            "a name is empty".to_owned()
        } else if value.chars().count() > MAX_PATTERN {
            format!("a name is longer than {MAX_PATTERN} characters")
        } else {
            patterns.push(value);
            continue;
        };
        return Err(ConfigProblem::new(problem).at(span));
    }
    Ok(NamePatterns::new(patterns))
}

/// The script of a table, which must define one of these functions.
pub(crate) fn resolve_script(
    table: ScriptTable,
    wanted: &[Function],
    folder: &Path,
) -> Result<Script, ConfigProblem> {
    let span = table.file.span.clone();
    let defaults = ScriptLimits::default();
    let limits = ScriptLimits {
        cpu_time: table
            .compute_ms
            .map_or(defaults.cpu_time, |time| Duration::from_millis(time.get().unsigned_abs())),
        memory: table.memory_mb.map_or(defaults.memory, |memory| count(memory.get()) << 20),
        max_concurrent: table
            .concurrency
            .map_or(defaults.max_concurrent, |calls| count(calls.get())),
    };
    let path = folder.join(file("file", table.file)?);
    let script = Script::load(&path, limits)
        .map_err(|problem| ConfigProblem::new(problem.to_string()).at(span.clone()))?;
    if !wanted.iter().any(|function| script.has(*function)) {
        let names: Vec<String> = wanted.iter().map(|it| format!("`{}`", it.name())).collect();
        let message = format!("`{}` has no function {}", path.display(), names.join(" or "));
        return Err(ConfigProblem::new(message)
            .help("define it at the top level of the file")
            .at(span));
    }
    Ok(script)
}
