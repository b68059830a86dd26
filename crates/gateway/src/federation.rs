//! Several servers behind one: each is reached by itself, and none makes the others wait for long.

use std::sync::{Arc, OnceLock};

use creole::Registry;
use creole::call::Call;
use creole::chain::{BoxFuture, Middleware, Next};
use creole::proto::fault::Fault;
use creole::proto::model::ListKind;
use creole::proto::op::{Operation, Outcome};
use tokio::task::JoinSet;

use crate::upstream::{Settings, Upstream};

/// The servers behind one.
#[derive(Clone, Default)]
pub struct Federation {
    upstreams: Arc<OnceLock<Vec<Arc<Upstream>>>>,
}

impl Federation {
    /// The layer that has calls wait until the servers behind are there; it belongs outside of all others.
    pub fn layer(&self) -> impl Middleware + use<> {
        Awaken { federation: self.clone() }
    }

    /// Reaches the servers, in the order in which their items are to be listed. Within a tokio runtime, once.
    pub fn begin(&self, servers: Vec<Settings>, registry: &Registry, has_own: bool) {
        let is_alone = servers.len() == 1 && !has_own;
        self.upstreams.get_or_init(|| {
            let started = servers.into_iter();
            started.map(|settings| Upstream::start(settings, registry, is_alone)).collect()
        });
    }

    /// Ends the conversations with the servers in peace; programs are stopped.
    pub async fn close(&self) {
        let mut closing = JoinSet::new();
        for upstream in self.upstreams() {
            let upstream = Arc::clone(upstream);
            closing.spawn(async move { upstream.close().await });
        }
        closing.join_all().await;
    }

    /// The servers.
    pub fn upstreams(&self) -> &[Arc<Upstream>] {
        self.upstreams.get().map_or(&[], Vec::as_slice)
    }

    /// Waits until every server was reached or could not be. Tells why the only one could not.
    async fn ready(&self, call: &Call) -> Result<(), Fault> {
        match self.upstreams() {
            [] => Ok(()),
            [only] => only.ready(&call.context).await,
            several => {
                let mut waiting = JoinSet::new();
                for upstream in several {
                    let (upstream, context) = (Arc::clone(upstream), call.context.clone());
                    // The others have something to offer.
                    waiting.spawn(async move { upstream.ready(&context).await.ok() });
                }
                waiting.join_all().await;
                Ok(())
            }
        }
    }
}

impl Federation {
    /// Has lists fetched again that became too old, and which nobody would tell us of.
    async fn refresh(&self, kind: ListKind) {
        let mut fetching = JoinSet::new();
        for upstream in self.upstreams().iter().filter(|upstream| upstream.is_stale(kind)) {
            let upstream = Arc::clone(upstream);
            fetching.spawn(async move { upstream.refresh(kind).await });
        }
        fetching.join_all().await;
    }

    fn is_stale(&self, kind: ListKind) -> bool {
        self.upstreams().iter().any(|upstream| upstream.is_stale(kind))
    }
}

struct Awaken {
    federation: Federation,
}

impl Middleware for Awaken {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if self.federation.upstreams().iter().all(|upstream| upstream.is_ready()) {
            return match call.operation {
                // Further pages belong to the list that the first one came from.
                Operation::List(kind, None) if self.federation.is_stale(kind) => {
                    Box::pin(async move {
                        self.federation.refresh(kind).await;
                        next.call(call).await
                    })
                }
                _ => next.call(call),
            };
        }
        Box::pin(async move {
            let reached = self.federation.ready(&call).await;
            match (reached, &call.operation) {
                // Whoever opens a conversation is told at once that there is nothing behind it.
                (Err(fault), Operation::Discover) => fault.into(),
                _ => next.call(call).await,
            }
        })
    }
}
