//! One server in the place of another, while clients are connected.
//!
//! Connections, sessions, tasks and subscriptions stay. Calls that run go on where they began; those that come
//! afterwards are answered by the successor.

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole_proto::model::ListKind;
use tokio::time::sleep;

use crate::registry::Registry;
use crate::server::{Service, ServiceCore};

/// How often is looked whether the last call has ended: nobody waits for it but what is no longer needed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A server that is ready to take another's place. Until then nobody sees what it has.
pub struct Replacement {
    pub(crate) service: Service,
    pub(crate) core: Arc<ServiceCore>,
}

impl Replacement {
    /// What it has, to be added to before it is seen.
    pub fn registry(&self) -> &Registry {
        &self.core.registry
    }

    /// Takes the place, and tells clients which lists are different now.
    pub fn swap(self) -> ReplacedServer {
        let before = self.service.current().swap(Arc::clone(&self.core));
        before.registry.stop_announcing();
        let changed = self.core.registry.start_announcing(&before.registry);
        ReplacedServer { shared: Arc::downgrade(&before), changed_lists: changed }
    }
}

/// A server whose place another has taken.
pub struct ReplacedServer {
    shared: Weak<ServiceCore>,
    changed_lists: Vec<ListKind>,
}

impl ReplacedServer {
    /// The lists that are different now.
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
