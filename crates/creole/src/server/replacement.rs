//! Replaces one server by another while clients are connected.
//!
//! Connections, sessions, tasks and subscriptions stay. Running calls continue in the replaced server; later ones go to
//! the replacement.

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole_proto::model::ListKind;
use tokio::time::sleep;

use crate::registry::Registry;
use crate::server::{Server, Service, ServiceCore};

/// The interval of checks whether the last call has ended: nothing urgent waits for it.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

impl Server {
    /// Prepares the replacement of a running service. It takes over its tasks, sealer, state and telemetry. Connections keep the
    /// name, version and limits that they began with. The dialect must be the same.
    #[doc(hidden)]
    pub fn prepare_replacement(mut self, running: &Service) -> Replacement {
        let before = running.current().load_full();
        self.sealer = Some(before.sealer.clone());
        self.telemetry = before.telemetry.telemetry().clone();
        let core = Arc::new(self.build(Some(&before.registry)));
        Replacement { service: running.clone(), core }
    }
}

/// A server that is ready to replace another. Until then no client sees its items.
pub struct Replacement {
    service: Service,
    core: Arc<ServiceCore>,
}

impl Replacement {
    /// Its registry, to which items can be added before it is visible.
    pub fn registry(&self) -> &Registry {
        &self.core.registry
    }

    /// Replaces the server, and announces the changed lists to clients.
    pub fn swap(self) -> ReplacedServer {
        let before = self.service.swap(Arc::clone(&self.core));
        before.registry.stop_announcing();
        let changed = self.core.registry.start_announcing(&before.registry);
        ReplacedServer { shared: Arc::downgrade(&before), changed_lists: changed }
    }
}

/// A server that was replaced.
pub struct ReplacedServer {
    shared: Weak<ServiceCore>,
    changed_lists: Vec<ListKind>,
}

impl ReplacedServer {
    /// The lists that changed.
    pub fn changed_lists(&self) -> &[ListKind] {
        &self.changed_lists
    }

    /// Waits until its last call has ended.
    pub async fn wait_until_drained(&self) {
        while self.shared.strong_count() > 0 {
            sleep(POLL_INTERVAL).await;
        }
    }
}
