//! The cache layer: stores results for a limited time.

mod entries;

use creole::internal::sync::Mutex;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use creole::internal::seal::digest;
use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::model::{Definition, ListKind};
use creole_proto::operation::{Operation, Outcome, Payload};
use creole_proto::wire::{Raw, canonical};

use crate::layers::NamePatterns;
use crate::layers::definitions::hints::HintedTools;
use crate::layers::results::result_size::{is_error_result, result_size};
use entries::{CacheEntries, CacheKey};

/// The cost of an entry besides its own bytes.
const ENTRY_OVERHEAD: usize = 256;

/// The settings of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// The maximum time to live of a result.
    pub ttl: Duration,
    /// The maximum size of the cache in bytes.
    pub max_bytes: usize,
    /// Tools whose results are cached although they do not declare that they are read-only.
    pub names: NamePatterns,
    /// Whether all callers share the cache.
    pub public: bool,
}

/// A layer that caches the results of reads, prompts and read-only tools. Lists are precomputed anyway, and caching
/// them would only hide changes.
#[derive(Debug)]
pub struct Cache {
    settings: CacheSettings,
    read_only: HintedTools,
    entries: Mutex<CacheEntries>,
}

impl Cache {
    /// A layer with these settings.
    pub fn new(settings: CacheSettings) -> Self {
        Self { settings, read_only: HintedTools::default(), entries: Mutex::default() }
    }

    /// The key of a call whose result may be cached. A call of several rounds, or one that runs as a task, never gets
    /// the result of another one.
    fn key(&self, call: &Call) -> Option<CacheKey> {
        let context = &call.context;
        let has_begun =
            context.caller().input_responses.is_some() || context.request_state().is_some();
        if has_begun || context.input_responses().next().is_some() || context.is_task() {
            return None;
        }
        match &call.operation {
            Operation::CallTool { name, .. } => {
                let may = self.read_only.contains(name) || self.settings.names.contains(name);
                may.then_some(())?;
            }
            Operation::ReadResource { .. } | Operation::GetPrompt { .. } => {}
            _ => return None,
        }
        let principal = if self.settings.public { "" } else { &**context.principal().binding() };
        let arguments = call.operation.arguments().map_or("{}", Raw::as_str);
        let parts = [
            digest(principal.as_bytes()),
            digest(call.operation.method().as_bytes()),
            digest(call.operation.target().as_bytes()),
            digest(canonical(arguments).as_bytes()),
        ];
        Some(digest(parts.as_flattened()))
    }

    fn store(&self, key: CacheKey, target: String, payload: &Payload) {
        let Some(bytes) = result_size(payload).map(|bytes| bytes + target.len() + ENTRY_OVERHEAD)
        else {
            return;
        };
        let Some(ttl) = self.ttl(payload) else { return };
        if is_error_result(payload) || bytes > self.settings.max_bytes {
            return;
        }
        let mut kept = self.entries();
        kept.insert((key, target), payload.clone(), bytes, ttl);
        kept.make_room(self.settings.max_bytes);
    }

    /// The time to live of a result: at most what the upstream states. A private result is not shared.
    fn ttl(&self, payload: &Payload) -> Option<Duration> {
        let relayed = match payload {
            Payload::Relayed(relayed) => relayed.cache_hints(),
            _ => None,
        };
        let Some(said) = relayed else { return Some(self.settings.ttl) };
        let is_for_them = said.public || !self.settings.public;
        let ttl = Duration::from_millis(said.ttl_ms).min(self.settings.ttl);
        Some(ttl).filter(|ttl| is_for_them && !ttl.is_zero())
    }

    fn entries(&self) -> MutexGuard<'_, CacheEntries> {
        self.entries.lock()
    }
}

impl Middleware for Cache {
    fn kind(&self) -> &'static str {
        "cache"
    }

    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let Some(key) = self.key(&call) else { return next.call(call) };
        if let Some(payload) = self.entries().get(&key) {
            return Box::pin(async move { Outcome::Complete(payload) });
        }
        let target = call.operation.target().to_owned();
        Box::pin(async move {
            let outcome = next.call(call).await;
            if let Outcome::Complete(payload) = &outcome {
                self.store(key, target, payload);
            }
            outcome
        })
    }

    fn rewrite_definition(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        self.read_only.record(kind, &item, |hints| hints.read_only);
        Some(item)
    }

    fn resource_updated(&self, uri: &str) {
        self.entries().remove_target(uri);
    }
}

#[cfg(test)]
mod tests;
