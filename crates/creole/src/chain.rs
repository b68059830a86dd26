//! The chain: middleware around an endpoint, and nothing else.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use creole_proto::fault::Fault;
use creole_proto::model::{Definition, InputRequest, ListKind};
use creole_proto::operation::Outcome;

use crate::call::{Call, ConnectionId};

/// A future on the heap: one per layer and message, which is noise beside a message's own cost.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What answers calls: a registry of tools, or a relay to another server.
pub trait Endpoint: Send + Sync {
    /// Answers one call.
    fn call(&self, call: Call) -> BoxFuture<'_, Outcome>;

    /// The same for whoever does not keep the endpoint meanwhile: the future does.
    fn call_owned(self: Arc<Self>, call: Call) -> BoxFuture<'static, Outcome>
    where
        Self: 'static,
    {
        Box::pin(async move { self.call(call).await })
    }

    /// Notes that a subscription of this connection to a resource ended.
    fn subscription_ended(&self, _uri: &str, _connection: ConnectionId) {}
}

/// A layer around an endpoint: it may refuse, delay or change a call, or wrap what comes of it.
pub trait Middleware: Send + Sync {
    /// Handles one call; `next` is the rest of the chain.
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome>;

    /// The item as this layer lets it be listed: as it is, changed, or not at all. It is asked when an item
    /// comes, not when a list is read; what it changes here, `handle` has to change back in calls, and what
    /// it hides, `handle` has to refuse.
    fn rewrite_definition(
        &self,
        _kind: ListKind,
        item: Arc<Definition>,
    ) -> Option<Arc<Definition>> {
        Some(item)
    }

    /// Whether a call of an item may pass that this layer was never asked to list. A layer that judges definitions
    /// says no for names that it does not know; what it has hidden, `handle` refuses.
    fn admits_unlisted(&self, _kind: ListKind, _name: &str) -> bool {
        true
    }

    /// A resource changed: what was kept of it is old. Told before subscribers are, so that they read what is new.
    fn resource_updated(&self, _uri: &str) {}

    /// Changes a question that belongs to no call, before the client is asked it.
    fn rewrite_input_request(&self, _question: &mut InputRequest) {}

    /// Names that [`rewrite_definition`](Self::rewrite_definition) gave to items may be given to others, because some are gone: all items of
    /// the list are asked for again. Tells whether the layer gives names at all.
    fn reassign_names(&self, _kind: ListKind) -> bool {
        false
    }

    /// Why an item that [`rewrite_definition`](Self::rewrite_definition) hides is withheld, where callers of it are told. `None` where it is
    /// answered as if there were no such item.
    fn withheld_fault(&self, _kind: ListKind, _item: &Definition) -> Option<Fault> {
        None
    }

    /// All items of a list were shaped, and clients are about to see them: what the layer has to remember of them is
    /// written now. It may wait for a file.
    fn save_definitions(&self) {}

    /// Whether [`rewrite_definition`](Self::rewrite_definition) would say something else than before; told once for each time. It is asked
    /// every few seconds, on a thread that may wait for a file.
    fn definitions_changed(&self) -> bool {
        false
    }

    /// The patterns in its settings that matched no item that was listed so far, in words.
    fn unmatched_patterns(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The patterns of all layers that matched no item that was listed so far, in words.
pub fn unmatched_patterns(layers: &[Arc<dyn Middleware>]) -> Vec<String> {
    layers.iter().flat_map(|layer| layer.unmatched_patterns()).collect()
}

/// Whether calls of an item may pass that the layers were never asked to list.
pub fn admits_unlisted(layers: &[Arc<dyn Middleware>], kind: ListKind, name: &str) -> bool {
    layers.iter().all(|layer| layer.admits_unlisted(kind, name))
}

/// Whether a layer lets something else be listed than before.
pub fn definitions_changed(layers: &[Arc<dyn Middleware>]) -> bool {
    layers.iter().fold(false, |changed, layer| layer.definitions_changed() | changed)
}

/// Has every layer change a question that belongs to no call, the innermost one first.
pub fn rewrite_input_request(layers: &[Arc<dyn Middleware>], question: &mut InputRequest) {
    layers.iter().rev().for_each(|layer| layer.rewrite_input_request(question));
}

/// Tells every layer that a resource changed, the innermost one first.
pub fn resource_updated(layers: &[Arc<dyn Middleware>], uri: &str) {
    layers.iter().rev().for_each(|layer| layer.resource_updated(uri));
}

/// Lets all layers give the names of a list anew; tells whether one of them gives any.
pub fn reassign_names(layers: &[Arc<dyn Middleware>], kind: ListKind) -> bool {
    layers.iter().fold(false, |gives, layer| layer.reassign_names(kind) | gives)
}

/// Lets every layer write down what it has to remember.
pub fn save_definitions(layers: &[Arc<dyn Middleware>]) {
    layers.iter().for_each(|layer| layer.save_definitions());
}

/// Why the layer that hides an item withholds it, where callers are told.
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

/// The item as all layers, outermost first, let it be listed: the innermost one is asked first.
pub fn rewrite_definition(
    layers: &[Arc<dyn Middleware>],
    kind: ListKind,
    item: Arc<Definition>,
) -> Option<Arc<Definition>> {
    layers.iter().rev().try_fold(item, |item, layer| layer.rewrite_definition(kind, item))
}

/// The rest of a chain.
#[derive(Clone, Copy)]
pub struct Next<'a> {
    layers: &'a [Arc<dyn Middleware>],
    endpoint: &'a dyn Endpoint,
}

impl<'a> Next<'a> {
    /// A chain of these layers, outermost first, around the endpoint.
    pub fn new(layers: &'a [Arc<dyn Middleware>], endpoint: &'a dyn Endpoint) -> Self {
        Self { layers, endpoint }
    }

    /// Passes the call on.
    pub fn call(self, call: Call) -> BoxFuture<'a, Outcome> {
        match self.layers.split_first() {
            Some((layer, rest)) => layer.handle(call, Self { layers: rest, ..self }),
            None => self.endpoint.call(call),
        }
    }
}
