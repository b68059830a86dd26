//! Several servers behind one: each is reached by itself, and none makes the others wait for long.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use creole::call::{Call, Context};
use creole::chain::{BoxFuture, Middleware, Next};
use creole::proto::fault::{Fault, FaultKind};
use creole::proto::model::ListKind;
use creole::proto::op::{Operation, Outcome};
use creole::{Registry, Source, WeakRegistry};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::upstream::{Settings, Upstream};

/// How often the layers around everything are asked whether they let something else be listed.
const LOOK: Duration = Duration::from_secs(2);

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
            tokio::spawn(look(registry.downgrade(), Arc::downgrade(&self.upstreams)));
            started.map(|settings| Upstream::start(settings, registry, is_alone)).collect()
        });
    }

    /// Reaches the servers for a successor of this server. Those that are as they were stay, with all their
    /// conversations, and move over when the successor takes the place.
    pub fn succeed(
        &self,
        servers: Vec<Settings>,
        registry: &Registry,
        has_own: bool,
    ) -> Succession {
        let is_alone = servers.len() == 1 && !has_own;
        let (mut upstreams, mut staying) = (Vec::new(), Vec::new());
        for settings in servers {
            // Places are given in the order in which items are to be listed.
            let place = registry.source();
            let known = self.upstreams().iter().find(|known| known.is_as(&settings, is_alone));
            upstreams.push(match known {
                Some(known) => {
                    staying.push((Arc::clone(known), place));
                    Arc::clone(known)
                }
                None => Upstream::start_at(place, settings, is_alone),
            });
        }
        let is_left = |known: &&Arc<Upstream>| !upstreams.iter().any(|it| Arc::ptr_eq(it, known));
        let leaving = self.upstreams().iter().filter(is_left).map(Arc::clone).collect();
        Succession { registry: registry.downgrade(), upstreams, staying, leaving }
    }

    /// Ends the conversations with the servers in peace; programs are stopped.
    pub async fn close(&self) {
        close(self.upstreams()).await;
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

    /// Looks what the servers list for this caller, where nobody has yet.
    async fn look_for(&self, kind: ListKind, context: &Context) {
        let mut looking = JoinSet::new();
        for upstream in self.upstreams().iter().filter(|it| it.is_unseen(kind, context)) {
            let (upstream, context) = (Arc::clone(upstream), context.clone());
            looking.spawn(async move { upstream.look_for(kind, &context).await });
        }
        looking.join_all().await;
    }

    fn is_unseen(&self, kind: ListKind, context: &Context) -> bool {
        self.upstreams().iter().any(|upstream| upstream.is_unseen(kind, context))
    }
}

/// Asks the layers around everything whether they let something else be listed, while somebody needs the servers.
async fn look(registry: WeakRegistry, needed: Weak<OnceLock<Vec<Arc<Upstream>>>>) {
    while needed.strong_count() > 0 {
        sleep(LOOK).await;
        let Some(registry) = registry.upgrade() else { return };
        // One that broke down is asked again.
        _ = tokio::task::spawn_blocking(move || registry.look_again()).await;
    }
}

/// The servers behind a successor, before it has taken the place.
pub struct Succession {
    registry: WeakRegistry,
    upstreams: Vec<Arc<Upstream>>,
    staying: Vec<(Arc<Upstream>, Source)>,
    leaving: Vec<Arc<Upstream>>,
}

impl Succession {
    /// Waits until every server was reached or could not be.
    pub async fn ready(&self) {
        let mut waiting = JoinSet::new();
        for upstream in &self.upstreams {
            let upstream = Arc::clone(upstream);
            waiting.spawn(async move { upstream.tried().await });
        }
        waiting.join_all().await;
    }

    /// Moves those that stay, just before the successor takes the place, and makes the federation that of the
    /// successor. Those that are no longer needed are to be [closed](Leaving::close) when the last call has ended.
    pub fn settle(self, federation: &Federation) -> Leaving {
        for (upstream, place) in self.staying {
            upstream.move_to(place);
        }
        tokio::spawn(look(self.registry, Arc::downgrade(&federation.upstreams)));
        federation.upstreams.get_or_init(|| self.upstreams);
        Leaving(self.leaving)
    }
}

/// Servers that are no longer behind.
pub struct Leaving(Vec<Arc<Upstream>>);

impl Leaving {
    /// Ends the conversations with them in peace.
    pub async fn close(self) {
        close(&self.0).await;
    }
}

async fn close(upstreams: &[Arc<Upstream>]) {
    let mut closing = JoinSet::new();
    for upstream in upstreams {
        let upstream = Arc::clone(upstream);
        closing.spawn(async move { upstream.close().await });
    }
    closing.join_all().await;
}

struct Awaken {
    federation: Federation,
}

impl Middleware for Awaken {
    fn handle<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        if self.federation.upstreams().iter().all(|upstream| upstream.is_ready()) {
            return self.pass(call, next);
        }
        Box::pin(async move {
            let reached = self.federation.ready(&call).await;
            match (reached, &call.operation) {
                // Whoever opens a conversation is told at once that there is nothing behind it.
                (Err(fault), Operation::Discover) => fault.into(),
                _ => self.pass(call, next).await,
            }
        })
    }
}

impl Awaken {
    /// Passes a call on when the servers behind are there. Most calls wait for nothing here.
    fn pass<'a>(&'a self, call: Call, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        let federation = &self.federation;
        match call.operation {
            // Further pages belong to the list that the first one came from.
            Operation::List(kind, None)
                if federation.is_stale(kind) || federation.is_unseen(kind, &call.context) =>
            {
                Box::pin(async move {
                    federation.refresh(kind).await;
                    federation.look_for(kind, &call.context).await;
                    next.call(call).await
                })
            }
            Operation::CallTool { .. } if federation.is_unseen(ListKind::Tools, &call.context) => {
                Box::pin(async move {
                    let outcome = next.call(call.clone()).await;
                    let is_unknown = matches!(&outcome, Outcome::Fail(fault) if fault.kind == FaultKind::UnknownTool);
                    if !is_unknown {
                        return outcome;
                    }
                    // A server may have it for those who can be asked for something.
                    federation.look_for(ListKind::Tools, &call.context).await;
                    next.call(call).await
                })
            }
            _ => next.call(call),
        }
    }
}
