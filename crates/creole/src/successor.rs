//! One server in the place of another, while clients are connected.
//!
//! Connections, sessions, tasks and subscriptions stay. Calls that run go on where they began; those that come
//! afterwards are answered by the successor.

use std::sync::{Arc, Weak};
use std::time::Duration;

use creole_proto::model::ListKind;
use tokio::time::sleep;

use crate::registry::Registry;
use crate::server::{Service, Shared};

/// How often is looked whether the last call has ended: nobody waits for it but what is no longer needed.
const LOOK: Duration = Duration::from_millis(100);

/// A server that is ready to take another's place. Until then nobody sees what it has.
pub struct Successor {
    pub(crate) service: Service,
    pub(crate) next: Arc<Shared>,
}

impl Successor {
    /// What it has, to be added to before it is seen.
    pub fn registry(&self) -> &Registry {
        &self.next.registry
    }

    /// Takes the place, and tells clients which lists are different now.
    pub fn take_over(self) -> Predecessor {
        let before = self.service.current().swap(Arc::clone(&self.next));
        before.registry.fall_silent();
        let changed = self.next.registry.speak_up(&before.registry);
        Predecessor { shared: Arc::downgrade(&before), changed }
    }
}

/// A server whose place another has taken.
pub struct Predecessor {
    shared: Weak<Shared>,
    changed: Vec<ListKind>,
}

impl Predecessor {
    /// The lists that are different now.
    pub fn changed(&self) -> &[ListKind] {
        &self.changed
    }

    /// Waits until its last call has ended.
    pub async fn ended(&self) {
        while self.shared.strong_count() > 0 {
            sleep(LOOK).await;
        }
    }
}
