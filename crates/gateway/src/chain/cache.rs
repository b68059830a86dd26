//! Keeps results for a while.

mod kept;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use creole::seal::digest;
use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::model::{Definition, ListKind};
use creole_proto::op::{Operation, Outcome, Payload};
use creole_proto::wire::{Raw, canonical};

use super::Names;
use super::hints::Known;
use super::weight::{is_error, weight};
use kept::{Kept, Key};

/// What a kept result costs besides its own bytes.
const OVERHEAD: usize = 256;

/// What is kept, how long and for whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// How long a result is kept.
    pub ttl: Duration,
    /// How much is kept in all, in bytes.
    pub max_bytes: usize,
    /// Tools whose results are kept although they do not say that they change nothing.
    pub names: Names,
    /// Whether all callers share what is kept.
    pub public: bool,
}

/// A layer that keeps the results of reads, prompts and tools that change nothing. Lists are prepared anyway, and
/// keeping them would only hide that they changed.
#[derive(Debug)]
pub struct Cache {
    settings: CacheSettings,
    read_only: Known,
    kept: Mutex<Kept>,
}

impl Cache {
    /// A layer with these settings.
    pub fn new(settings: CacheSettings) -> Self {
        Self { settings, read_only: Known::default(), kept: Mutex::default() }
    }

    /// The key of a call whose result may be kept. A call that belongs to a conversation of several rounds, or that
    /// runs as a task, is never answered by the result of another one.
    fn key(&self, call: &Call) -> Option<Key> {
        let context = &call.context;
        let has_begun = context.caller().reentry.is_some() || context.state().is_some();
        if has_begun || context.answers().next().is_some() || context.is_task() {
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
        let principal = if self.settings.public { "" } else { context.principal() };
        let arguments = call.operation.arguments().map_or("{}", Raw::as_str);
        let parts = [
            digest(principal.as_bytes()),
            digest(call.operation.method().as_bytes()),
            digest(call.operation.target().as_bytes()),
            digest(canonical(arguments).as_bytes()),
        ];
        Some(digest(parts.as_flattened()))
    }

    fn keep(&self, key: Key, payload: &Payload) {
        let Some(bytes) = weight(payload).map(|bytes| bytes + OVERHEAD) else { return };
        if is_error(payload) || bytes > self.settings.max_bytes {
            return;
        }
        let mut kept = self.kept();
        kept.keep(key, payload.clone(), bytes, self.settings.ttl);
        kept.make_room(self.settings.max_bytes);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Middleware for Cache {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let Some(key) = self.key(&call) else { return next.call(call) };
        if let Some(payload) = self.kept().find(&key) {
            return Box::pin(async move { Outcome::Complete(payload) });
        }
        Box::pin(async move {
            let outcome = next.call(call).await;
            if let Outcome::Complete(payload) = &outcome {
                self.keep(key, payload);
            }
            outcome
        })
    }

    fn shape(&self, kind: ListKind, item: Arc<Definition>) -> Option<Arc<Definition>> {
        self.read_only.note(kind, &item, |hints| hints.read_only);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{Flaky, call, fault, text};
    use creole_proto::fault::{Fault, FaultKind};

    fn serve(max_bytes: usize, public: bool) -> (creole::Service, Arc<Flaky>) {
        let ttl = Duration::from_secs(60);
        let names = Names::default();
        let cache = Cache::new(CacheSettings { ttl, max_bytes, names, public });
        Flaky::serve(cache, Fault::new(FaultKind::ToolFailed, "no"), 0)
    }

    #[tokio::test(start_paused = true)]
    async fn what_changes_nothing_is_asked_once_in_a_while_by_each_caller() {
        let (service, flaky) = serve(100_000, false);
        for arguments in [r#"{"a":1,"b":2}"#, r#"{ "b": 2.0, "a": 1 }"#] {
            assert_eq!(text(&call(&service, "a", "read", arguments).await), "done");
        }
        assert_eq!(flaky.calls(), 1);
        call(&service, "b", "read", r#"{"a":1,"b":2}"#).await;
        call(&service, "a", "read", r#"{"a":2}"#).await;
        assert_eq!(flaky.calls(), 3);
        tokio::time::advance(Duration::from_secs(61)).await;
        call(&service, "a", "read", r#"{"a":1,"b":2}"#).await;
        assert_eq!(flaky.calls(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_public_is_shared() {
        let (service, flaky) = serve(100_000, true);
        call(&service, "a", "read", "{}").await;
        call(&service, "b", "read", "{}").await;
        assert_eq!(flaky.calls(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_and_what_may_change_something_are_not_kept() {
        let (service, flaky) = serve(100_000, false);
        flaky.fail(1);
        fault(call(&service, "a", "read", "{}").await);
        assert_eq!(text(&call(&service, "a", "read", "{}").await), "done");
        call(&service, "a", "write", "{}").await;
        call(&service, "a", "write", "{}").await;
        assert_eq!(flaky.calls(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_go_when_there_is_no_room() {
        let (service, flaky) = serve(2 * OVERHEAD + 50, false);
        for arguments in [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3}"#, r#"{"a":3}"#, r#"{"a":1}"#] {
            call(&service, "a", "read", arguments).await;
        }
        assert_eq!(flaky.calls(), 4);
    }
}
