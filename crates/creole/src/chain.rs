//! The chain: middleware layers around an endpoint.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use creole_proto::fault::Fault;
use creole_proto::model::{Definition, InputRequest, ListKind};
use creole_proto::operation::Outcome;

mod observed_layer;

pub use crate::call::BoxFuture;
use crate::call::{Call, ConnectionId};
use crate::principal::Principal;
use crate::telemetry::frames::FrameRedactor;

/// Executes calls: a registry of tools, or a relay to an upstream.
pub trait Endpoint: Send + Sync {
    /// Executes one call.
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome>;

    /// The same with an owned endpoint, which the future keeps alive.
    fn call_owned(self: Arc<Self>, call: Call) -> BoxFuture<'static, Outcome>
    where
        Self: 'static,
    {
        Box::pin(async move { self.call(call).await })
    }

    /// Records that a subscription of this connection to a resource ended.
    fn subscription_ended(&self, _uri: &str, _connection: ConnectionId) {}
}

/// The callers that see the same items of a server.
#[doc(hidden)]
pub trait ViewerClass: Send + Sync {
    /// Its number, which no other class of the process has.
    fn id(&self) -> u64;

    /// The digest of the rules that decide what its callers see.
    fn rules_digest(&self) -> u64;

    /// Whether its callers see an item of a list.
    fn sees(&self, kind: ListKind, item: &Definition) -> bool;

    /// Whether its callers see the resource with this URI.
    fn sees_resource(&self, uri: &str) -> bool;

    /// Whether its callers may send a request about the tasks of this tool.
    fn sees_task(&self, method: &'static str, tool: &str) -> bool;
}

/// A layer that refuses calls to an upstream that fails, as operators see it.
pub trait CircuitBreaker {
    /// Its state.
    fn status(&self) -> BreakerStatus;

    /// When it began to refuse calls, and when it let them pass again, oldest first.
    fn changes(&self) -> Vec<BreakerChange>;

    /// Lets calls pass again.
    fn reset(&self);
}

/// The state of a circuit breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerStatus {
    /// `closed`, `open` or `half_open`.
    pub state: &'static str,
    /// How many calls have failed in a row.
    pub failures: u32,
    /// How long calls are refused.
    pub wait: Option<Duration>,
}

/// A circuit breaker began to refuse calls, or let them pass again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerChange {
    /// When.
    pub at: SystemTime,
    /// Whether it refuses calls from then on.
    pub is_open: bool,
}

/// A layer around an endpoint: it may reject, delay or change a call, or rewrite its outcome.
pub trait Middleware: Send + Sync {
    /// Handles one call; `next` is the rest of the chain.
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome>;

    /// What kind of layer it is, in one word of the configuration.
    #[doc(hidden)]
    fn kind(&self) -> &'static str {
        "layer"
    }

    /// Whether the layer belongs to the program and not to a configured chain. The telemetry does not report what it
    /// does, and it passes calls on with [`Next::start`].
    #[doc(hidden)]
    fn is_internal(&self) -> bool {
        false
    }

    /// A text without what the layer hides from callers. `None` if it hides nothing in texts.
    #[doc(hidden)]
    fn redact_text(&self, _text: &str) -> Option<String> {
        None
    }

    /// The definition as this layer lists it: unchanged, changed, or not at all. Called when an item is added, not when
    /// a list is read. `handle` has to reverse these changes in calls, and to reject calls of hidden items.
    fn rewrite_definition(
        &self,
        _kind: ListKind,
        item: Arc<Definition>,
    ) -> Option<Arc<Definition>> {
        Some(item)
    }

    /// The class of a caller, if the layer shows callers different items. Called when a list is read. `handle` has to
    /// reject calls of items that the class does not see.
    #[doc(hidden)]
    fn viewer_class(&self, _principal: &Principal) -> Option<Arc<dyn ViewerClass>> {
        None
    }

    /// Whether a call may pass whose item this layer has never seen in a list. A layer that judges definitions returns
    /// false for unknown names; `handle` rejects the calls of items that it has hidden.
    fn admits_unlisted(&self, _kind: ListKind, _name: &str) -> bool {
        true
    }

    /// A resource changed: cached contents are stale. Called before subscribers are notified, so that they read the new
    /// contents.
    #[doc(hidden)]
    fn resource_updated(&self, _uri: &str) {}

    /// Rewrites an input request that belongs to no call, before it is sent to the client.
    #[doc(hidden)]
    fn rewrite_input_request(&self, _input_request: &mut InputRequest) {}

    /// Names that [`rewrite_definition`](Self::rewrite_definition) assigned may be assigned again, because some items
    /// were removed: all items of the list are rewritten again. Returns whether the layer assigns names at all.
    #[doc(hidden)]
    fn reassign_names(&self, _kind: ListKind) -> bool {
        false
    }

    /// The fault for callers of an item that [`rewrite_definition`](Self::rewrite_definition) hides. `None` if the item
    /// is reported as unknown.
    #[doc(hidden)]
    fn withheld_fault(&self, _kind: ListKind, _item: &Definition) -> Option<Fault> {
        None
    }

    /// All items of a list are rewritten, and clients are about to see them: the layer saves what it must remember of
    /// them. It may wait for a file.
    #[doc(hidden)]
    fn save_definitions(&self) {}

    /// Whether [`rewrite_definition`](Self::rewrite_definition) would return something else than before; reported once
    /// per change. Called every few seconds, on a thread that may wait for a file.
    #[doc(hidden)]
    fn definitions_changed(&self) -> bool {
        false
    }

    /// The layer as a circuit breaker, if it is one.
    #[doc(hidden)]
    fn circuit_breaker(&self) -> Option<&dyn CircuitBreaker> {
        None
    }

    /// The patterns in its settings that have matched no listed item so far, as readable text.
    #[doc(hidden)]
    fn unmatched_patterns(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A function is a layer too: `fn log(call: Call, next: Next<'_>) -> BoxFuture<'_, Outcome>`.
impl<F> Middleware for F
where
    F: for<'a> Fn(Call, Next<'a>) -> BoxFuture<'a, Outcome> + Send + Sync,
{
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        self(call, next)
    }
}

/// The patterns of all layers that have matched no listed item so far, as readable text.
pub fn unmatched_patterns(layers: &[Arc<dyn Middleware>]) -> Vec<String> {
    layers.iter().flat_map(|layer| layer.unmatched_patterns()).collect()
}

/// The class of a caller, if a layer shows callers different items.
pub fn viewer_class(
    layers: &[Arc<dyn Middleware>],
    principal: &Principal,
) -> Option<Arc<dyn ViewerClass>> {
    layers.iter().find_map(|layer| layer.viewer_class(principal))
}

/// Whether a call may pass whose item the layers have never seen in a list.
pub fn admits_unlisted(layers: &[Arc<dyn Middleware>], kind: ListKind, name: &str) -> bool {
    layers.iter().all(|layer| layer.admits_unlisted(kind, name))
}

/// Whether a layer would rewrite definitions differently than before.
pub fn definitions_changed(layers: &[Arc<dyn Middleware>]) -> bool {
    layers.iter().fold(false, |changed, layer| layer.definitions_changed() | changed)
}

/// Lets every layer rewrite an input request that belongs to no call, the innermost one first.
pub fn rewrite_input_request(layers: &[Arc<dyn Middleware>], input_request: &mut InputRequest) {
    layers.iter().rev().for_each(|layer| layer.rewrite_input_request(input_request));
}

/// Notifies every layer that a resource changed, the innermost one first.
pub fn resource_updated(layers: &[Arc<dyn Middleware>], uri: &str) {
    layers.iter().rev().for_each(|layer| layer.resource_updated(uri));
}

/// Lets all layers assign the names of a list again; returns whether one of them assigns any.
pub fn reassign_names(layers: &[Arc<dyn Middleware>], kind: ListKind) -> bool {
    layers.iter().fold(false, |gives, layer| layer.reassign_names(kind) | gives)
}

/// Lets every layer save what it must remember.
pub fn save_definitions(layers: &[Arc<dyn Middleware>]) {
    layers.iter().for_each(|layer| layer.save_definitions());
}

/// The fault of the layer that hides an item, if its callers get one.
pub fn withheld_fault(
    layers: &[Arc<dyn Middleware>],
    kind: ListKind,
    mut item: Arc<Definition>,
) -> Option<Fault> {
    for layer in layers.iter().rev() {
        match layer.rewrite_definition(kind, Arc::clone(&item)) {
            Some(shaped) => item = shaped,
            None => return layer.withheld_fault(kind, &item),
        }
    }
    None
}

/// The definition as all layers list it; they are given outermost first, and the innermost one is applied first.
pub fn rewrite_definition(
    layers: &[Arc<dyn Middleware>],
    kind: ListKind,
    item: Arc<Definition>,
) -> Option<Arc<Definition>> {
    layers.iter().rev().try_fold(item, |item, layer| layer.rewrite_definition(kind, item))
}

/// Removes from texts what the layers hide from callers, if one of them does.
pub(crate) fn redactor(layers: &Arc<[Arc<dyn Middleware>]>) -> Option<FrameRedactor> {
    let hiding: Vec<_> =
        layers.iter().filter(|layer| layer.redact_text("").is_some()).cloned().collect();
    (!hiding.is_empty()).then(|| -> FrameRedactor {
        Arc::new(move |text| {
            let redact = |text: String, layer: &Arc<dyn Middleware>| {
                layer.redact_text(&text).unwrap_or(text)
            };
            hiding.iter().fold(text.to_owned(), redact)
        })
    })
}

/// The rest of a chain.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Arc<dyn Middleware>],
    endpoint: &'a dyn Endpoint,
}

impl<'a> Next<'a> {
    /// A chain of these layers, outermost first, around the endpoint.
    #[doc(hidden)]
    pub fn new(layers: &'a [Arc<dyn Middleware>], endpoint: &'a dyn Endpoint) -> Self {
        Self { layers, endpoint }
    }

    /// Passes the call on.
    pub fn call(self, call: Call) -> BoxFuture<'a, Outcome> {
        match call.context.is_observed() {
            false => self.call_unobserved(call),
            true => self.call_observed(call),
        }
    }

    /// Gives a call to the chain, without counting that a layer passed it on.
    #[doc(hidden)]
    pub fn start(self, call: Call) -> BoxFuture<'a, Outcome> {
        match call.context.is_observed() {
            true if !self.layers.is_empty() => self.start_observed(call),
            _ => self.call_unobserved(call),
        }
    }

    /// Gives a call to the chain around this upstream.
    #[doc(hidden)]
    pub fn start_around(self, upstream: &Arc<str>, mut call: Call) -> BoxFuture<'a, Outcome> {
        if call.context.is_observed() {
            call.context.enter_chain(upstream);
        }
        self.start(call)
    }

    fn call_unobserved(self, call: Call) -> BoxFuture<'a, Outcome> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.handle(call, Self { layers: rest, ..self }),
            None => self.endpoint.call(call),
        }
    }
}
