//! Built-in layers of a chain, for code and TOML. Each layer does one thing.
//!
//! A chain surrounds the whole server or one upstream. The first layer is outermost. A layer that changes or hides
//! definitions does so when items arrive ([`Middleware::rewrite_definition`]), so that lists cost nothing more, and
//! maps calls back when they pass. Names in the settings of a layer are the names at its place in the chain: if an
//! inner layer names an item `a` and an outer layer renames it to `b`, it is `b` outside of both.

pub(crate) mod definitions;
pub(crate) mod limits;
mod operation_item;
pub(crate) mod results;

#[cfg(any(test, feature = "testing"))]
pub mod testing;

use std::fmt;
use std::sync::Arc;

use creole::internal::call::ConnectionId;
use creole::internal::chain::{BreakerChange, BreakerStatus, CircuitBreaker, Endpoint};
use creole::{BoxFuture, Call, Middleware, Next};
use creole_proto::fault::Fault;
use creole_proto::model::{Definition, InputRequest, ListKind};
use creole_proto::operation::Outcome;

pub use crate::layers::definitions::filter::{Filter, FilterSettings};
pub(crate) use crate::layers::definitions::hints::Hints;
pub use crate::layers::definitions::json_edit::newest_json;
pub use crate::layers::definitions::pin::{
    ChangedTool, Difference, Pin, PinDecision, PinDecisionOutcome, PinLocation, PinView,
    SharedPinSet,
};
pub use crate::layers::definitions::rename::{Rename, RenameSettings};
pub use crate::layers::definitions::rewrite::{Rewrite, ToolRewrite};
pub use crate::layers::limits::breaker::{Breaker, BreakerSettings};
pub use crate::layers::limits::concurrency::{Concurrency, ConcurrencySettings};
pub use crate::layers::limits::rate_limit::{RateLimit, RateSettings};
pub use crate::layers::limits::retry::{Retry, RetrySettings};
pub use crate::layers::limits::size_limit::SizeLimit;
pub use crate::layers::limits::timeout::Timeout;
pub use crate::layers::results::cache::{Cache, CacheSettings};
pub use crate::layers::results::redact::{Redact, RedactScope, Redactor};
pub use creole::internal::name_patterns::NamePatterns;
pub use operation_item::{item_of, unknown_item_fault};

/// The layers around one upstream, outermost first. Clones share the layers.
#[derive(Clone)]
pub struct Chain(Arc<[Arc<dyn Middleware>]>);

impl Chain {
    /// A chain of these layers.
    pub fn new(layers: Vec<Arc<dyn Middleware>>) -> Self {
        Self(layers.into())
    }

    /// The definition of an item after all layers have rewritten it, unless a layer hides it.
    pub fn rewrite_definition(
        &self,
        kind: ListKind,
        item: Arc<Definition>,
    ) -> Option<Arc<Definition>> {
        creole::internal::chain::rewrite_definition(&self.0, kind, item)
    }

    /// Whether a circuit breaker refuses every call for now.
    pub(crate) fn refuses_all_calls(&self) -> bool {
        let is_open = |status: BreakerStatus| status.wait.is_some_and(|wait| !wait.is_zero());
        self.breakers().any(|breaker| is_open(breaker.status()))
    }

    /// The fault that calls of a withheld item get, if the layer states one.
    pub fn withheld_fault(&self, kind: ListKind, item: Arc<Definition>) -> Option<Fault> {
        creole::internal::chain::withheld_fault(&self.0, kind, item)
    }

    /// Lets the layers save the definitions that they have seen.
    pub fn save_definitions(&self) {
        creole::internal::chain::save_definitions(&self.0);
    }

    /// Notifies the layers that a resource of the upstream changed.
    pub fn resource_updated(&self, uri: &str) {
        creole::internal::chain::resource_updated(&self.0, uri);
    }

    /// Lets the layers rewrite an input request that belongs to no call, before it reaches a client.
    pub fn rewrite_input_request(&self, input_request: &mut InputRequest) {
        creole::internal::chain::rewrite_input_request(&self.0, input_request);
    }

    /// Lets the layers assign the names of a list again. All of its items are rewritten afterwards.
    pub fn reassign_names(&self, kind: ListKind) {
        creole::internal::chain::reassign_names(&self.0, kind);
    }

    /// Whether a layer would rewrite or hide definitions differently than before.
    pub fn definitions_changed(&self) -> bool {
        creole::internal::chain::definitions_changed(&self.0)
    }

    /// The patterns of the layers that have matched no listed item so far, as messages.
    pub fn unmatched_patterns(&self) -> Vec<String> {
        creole::internal::chain::unmatched_patterns(&self.0)
    }

    /// The state of its circuit breaker, if it has one.
    pub fn breaker_status(&self) -> Option<BreakerStatus> {
        self.breakers().next().map(CircuitBreaker::status)
    }

    /// When its circuit breaker opened and closed, oldest first.
    pub fn breaker_changes(&self) -> Vec<BreakerChange> {
        self.breakers().next().map_or_else(Vec::new, CircuitBreaker::changes)
    }

    /// Lets calls pass its circuit breakers again. Returns whether it has one.
    pub fn reset_breakers(&self) -> bool {
        self.breakers().map(CircuitBreaker::reset).count() > 0
    }

    fn breakers(&self) -> impl Iterator<Item = &dyn CircuitBreaker> {
        self.0.iter().filter_map(|layer| layer.circuit_breaker())
    }

    /// Whether the layers admit calls of an item that was never listed.
    pub fn admits_unlisted(&self, kind: ListKind, name: &str) -> bool {
        creole::internal::chain::admits_unlisted(&self.0, kind, name)
    }

    /// The endpoint with the layers around it.
    pub fn wrap(&self, endpoint: Arc<dyn Endpoint>, upstream: &str) -> Arc<dyn Endpoint> {
        match self.0.is_empty() {
            true => endpoint,
            false => Arc::new(ChainedEndpoint {
                layers: Arc::clone(&self.0),
                endpoint,
                upstream: upstream.into(),
            }),
        }
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Chain({} layers)", self.0.len())
    }
}

struct ChainedEndpoint {
    layers: Arc<[Arc<dyn Middleware>]>,
    endpoint: Arc<dyn Endpoint>,
    /// The name of the upstream.
    upstream: Arc<str>,
}

impl Endpoint for ChainedEndpoint {
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome> {
        Next::new(&self.layers, &*self.endpoint).start_around(&self.upstream, call)
    }

    fn subscription_ended(&self, uri: &str, connection: ConnectionId) {
        self.endpoint.subscription_ended(uri, connection);
    }
}
