//! The plan of a layer, and how the layer is built from it.

use std::path::Path;
use std::sync::Arc;

use creole::Middleware;
use creole_tools::script::Script;

pub use crate::plan::audit::{AuditArgumentsPlan, AuditPlan, AuditTargetPlan};
pub use crate::plan::layer_environment::{LayerEnvironment, LayerError};
pub use crate::plan::pins::PinPlan;
pub use crate::plan::redaction::RedactPlan;
use crate::script_layer::ScriptLayer;
use creole_gateway::layers::{
    Breaker, BreakerSettings, Cache, CacheSettings, Concurrency, ConcurrencySettings, Filter,
    FilterSettings, RateLimit, RateSettings, Redact, RedactScope, Rename, RenameSettings, Retry,
    RetrySettings, Rewrite, SizeLimit, Timeout,
};

/// One layer of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum LayerPlan {
    /// Ends calls that take too long.
    Timeout(Timeout),
    /// Retries calls that are safe to repeat.
    Retry(RetrySettings),
    /// Limits the number of concurrent calls.
    Concurrency(ConcurrencySettings),
    /// Limits the rate of calls.
    RateLimit(RateSettings),
    /// Stops calls to an upstream that fails.
    CircuitBreaker(BreakerSettings),
    /// Caches results.
    Cache(CacheSettings),
    /// Hides items.
    Filter(FilterSettings),
    /// Renames items.
    Rename(RenameSettings),
    /// Changes the definitions and the arguments of tools.
    Rewrite(Rewrite),
    /// Redacts secrets in results and arguments.
    Redact(RedactPlan, RedactScope),
    /// Rejects arguments and results that are too large.
    SizeLimit(SizeLimit),
    /// Writes an audit log.
    Audit(AuditPlan),
    /// Withholds tools whose definitions changed.
    Pin(PinPlan),
    /// Runs functions of a script.
    Script(Script),
}

/// Builds the layers of a chain, outermost first, around the server of this name.
///
/// # Errors
/// When a file of a layer cannot be opened.
pub fn build(
    plans: &[LayerPlan],
    server: &str,
    environment: &LayerEnvironment,
) -> Result<Vec<Arc<dyn Middleware>>, LayerError> {
    plans.iter().map(|plan| plan.build(server, environment)).collect()
}

impl LayerPlan {
    /// Its kind in the configuration.
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

    /// The script, if this is a script layer.
    pub(crate) fn script(&self) -> Option<&Script> {
        match self {
            Self::Script(script) => Some(script),
            _ => None,
        }
    }

    fn build(
        &self,
        server: &str,
        environment: &LayerEnvironment,
    ) -> Result<Arc<dyn Middleware>, LayerError> {
        Ok(match self {
            Self::Timeout(layer) => Arc::new(layer.clone()),
            Self::Retry(settings) => Arc::new(Retry::new(settings.clone())),
            Self::Concurrency(settings) => Arc::new(Concurrency::new(*settings)),
            Self::RateLimit(settings) => Arc::new(match &environment.state {
                Some(state) => RateLimit::new(*settings).with_replicas(state, server),
                None => RateLimit::new(*settings),
            }),
            Self::CircuitBreaker(settings) => Arc::new(Breaker::new(*settings)),
            Self::Cache(settings) => Arc::new(Cache::new(settings.clone())),
            Self::Filter(settings) => Arc::new(Filter::new(settings.clone())),
            Self::Rename(settings) => Arc::new(Rename::new(settings.clone())),
            Self::Rewrite(layer) => Arc::new(layer.clone()),
            Self::Redact(plan, from) => Arc::new(Redact::new(plan.redactor()?, *from)),
            Self::SizeLimit(layer) => Arc::new(*layer),
            Self::Audit(plan) => Arc::new(plan.build(server, environment)?),
            Self::Pin(plan) => Arc::new(plan.build(server, environment)?),
            Self::Script(script) => Arc::new(ScriptLayer::new(script.clone())),
        })
    }

    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(self, folder: &Path) -> Self {
        match self {
            Self::Audit(plan) => Self::Audit(plan.resolve_paths(folder)),
            Self::Pin(PinPlan::File(file)) => Self::Pin(PinPlan::File(folder.join(file))),
            other => other,
        }
    }
}
