//! A layer of a chain as it is planned, and made.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use creole::Middleware;
use creole_tools::script::Script;

use crate::script_layer::ScriptLayer;
use creole_gateway::layers::{
    Audit, AuditArguments, AuditSettings, Breaker, BreakerSettings, Cache, CacheSettings,
    Concurrency, ConcurrencySettings, Filter, FilterSettings, Pin, RateLimit, RateSettings, Redact,
    RedactScope, Redactor, Rename, RenameSettings, Retry, RetrySettings, Rewrite, SizeLimit,
    Timeout,
};

/// One layer of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum LayerPlan {
    /// Ends calls that take too long.
    Timeout(Timeout),
    /// Tries again what may be tried again.
    Retry(RetrySettings),
    /// Lets only so many calls run at once.
    Concurrency(ConcurrencySettings),
    /// Lets only so many calls through in a time.
    RateLimit(RateSettings),
    /// Spares a server that fails.
    CircuitBreaker(BreakerSettings),
    /// Keeps results for a while.
    Cache(CacheSettings),
    /// Hides what is not to be seen.
    Filter(FilterSettings),
    /// Gives other names.
    Rename(RenameSettings),
    /// Changes what tools say of themselves and what they are given.
    Rewrite(Rewrite),
    /// Takes secrets out of results and arguments.
    Redact(RedactPlan, RedactScope),
    /// Refuses what is too large.
    SizeLimit(SizeLimit),
    /// Writes down who did what.
    Audit(AuditPlan),
    /// Withholds tools that changed; this file remembers them.
    Pin(PathBuf),
    /// Runs functions of a script.
    Script(Script),
}

/// What is taken out of texts and data. Each pattern is a regular expression, each pointer a JSON pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactPlan {
    /// What is taken out of texts.
    pub patterns: Vec<String>,
    /// Places in data.
    pub pointers: Vec<String>,
    /// What stands there instead.
    pub replacement: String,
}

/// An audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditPlan {
    /// The file.
    pub file: PathBuf,
    /// How large the file becomes, in bytes.
    pub max_bytes: u64,
    /// How many older files are kept.
    pub keep: u32,
    /// What is written of the arguments.
    pub arguments: AuditArgumentsPlan,
    /// Whether what is written is forced to the disk each time.
    pub sync: bool,
}

/// What is written of the arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditArgumentsPlan {
    /// Nothing.
    None,
    /// Their digest.
    Digest,
    /// All but this.
    Redacted(RedactPlan),
}

/// A layer, or a way to a server, that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerError(String);

impl LayerError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for LayerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for LayerError {}

/// The layers of a chain, outermost first, around the server of this name.
///
/// # Errors
/// When a file of a layer cannot be opened.
pub fn build(plans: &[LayerPlan], server: &str) -> Result<Vec<Arc<dyn Middleware>>, LayerError> {
    plans.iter().map(|plan| plan.build(server)).collect()
}

impl LayerPlan {
    /// What it is called in configurations.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Retry(_) => "retry",
            Self::Concurrency(_) => "concurrency",
            Self::RateLimit(_) => "rate-limit",
            Self::CircuitBreaker(_) => "circuit-breaker",
            Self::Cache(_) => "cache",
            Self::Filter(_) => "filter",
            Self::Rename(_) => "rename",
            Self::Rewrite(_) => "rewrite",
            Self::Redact(..) => "redact",
            Self::SizeLimit(_) => "size-limit",
            Self::Audit(_) => "audit",
            Self::Pin(_) => "pin",
            Self::Script(_) => "script",
        }
    }

    /// The script, if it is one.
    pub(crate) fn script(&self) -> Option<&Script> {
        match self {
            Self::Script(script) => Some(script),
            _ => None,
        }
    }

    fn build(&self, server: &str) -> Result<Arc<dyn Middleware>, LayerError> {
        Ok(match self {
            Self::Timeout(layer) => Arc::new(layer.clone()),
            Self::Retry(settings) => Arc::new(Retry::new(settings.clone())),
            Self::Concurrency(settings) => Arc::new(Concurrency::new(*settings)),
            Self::RateLimit(settings) => Arc::new(RateLimit::new(*settings)),
            Self::CircuitBreaker(settings) => Arc::new(Breaker::new(*settings)),
            Self::Cache(settings) => Arc::new(Cache::new(settings.clone())),
            Self::Filter(settings) => Arc::new(Filter::new(settings.clone())),
            Self::Rename(settings) => Arc::new(Rename::new(settings.clone())),
            Self::Rewrite(layer) => Arc::new(layer.clone()),
            Self::Redact(plan, from) => Arc::new(Redact::new(plan.redactor()?, *from)),
            Self::SizeLimit(layer) => Arc::new(*layer),
            Self::Audit(plan) => Arc::new(plan.build(server)?),
            Self::Pin(file) => Arc::new(Pin::new(server, file).map_err(|error| {
                let file = file.display();
                LayerError(format!("`{file}`, which remembers tools, cannot be used: {error}"))
            })?),
            Self::Script(script) => Arc::new(ScriptLayer::new(script.clone())),
        })
    }

    /// The same layer, with relative paths that begin at this folder.
    pub(crate) fn resolve_paths(self, folder: &Path) -> Self {
        match self {
            Self::Audit(plan) => Self::Audit(AuditPlan { file: folder.join(&plan.file), ..plan }),
            Self::Pin(file) => Self::Pin(folder.join(file)),
            other => other,
        }
    }
}

impl RedactPlan {
    /// What does it.
    pub(crate) fn redactor(&self) -> Result<Redactor, LayerError> {
        Redactor::new(&self.patterns, &self.pointers, &self.replacement)
            .map_err(|error| LayerError(error.to_string()))
    }
}

impl AuditPlan {
    fn build(&self, server: &str) -> Result<Audit, LayerError> {
        let Self { file, max_bytes, keep, arguments, sync } = self.clone();
        let arguments = match arguments {
            AuditArgumentsPlan::None => AuditArguments::None,
            AuditArgumentsPlan::Digest => AuditArguments::Digest,
            AuditArgumentsPlan::Redacted(plan) => AuditArguments::Redacted(plan.redactor()?),
        };
        Audit::new(server, AuditSettings { file, max_bytes, keep, arguments, sync }).map_err(
            |error| {
                LayerError(format!(
                    "the audit log `{}` cannot be written: {error}",
                    self.file.display()
                ))
            },
        )
    }
}
