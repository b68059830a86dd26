//! The right to do something alone for a while.

use std::sync::Arc;
use std::time::Duration;

use super::{Condition, Namespace, Result, State};

/// A lease that was taken. Nobody else gets it before it is released or too old.
///
/// A holder that was stopped for longer than that does not notice. What must not be done by two is
/// therefore to be guarded by [`Lease::fence`]: whoever is told a lower number than before refuses.
///
/// Dropping it does not release it, because that may have to wait for a file; it then ends by its age.
#[derive(Debug)]
#[must_use = "nobody else gets the lease until it is released or too old"]
pub struct Lease {
    state: State,
    name: Arc<str>,
    fence: u64,
}

impl Lease {
    pub(super) fn new(state: State, name: &str, fence: u64) -> Self {
        Self { state, name: name.into(), fence }
    }

    /// Greater than that of every earlier holder.
    #[must_use]
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// Holds the lease for `ttl` from now on. False once it has ended: somebody else may have had it
    /// since, so it has to be taken anew, which gives a new fencing number.
    ///
    /// # Errors
    /// When the file fails.
    pub async fn renew(&self, ttl: Duration) -> Result<bool> {
        let held = Condition::Version(self.fence);
        self.state.prolong(Namespace::Leases, &self.name, held, Some(ttl)).await
    }

    /// Lets others have it at once. False when it had ended already.
    ///
    /// # Errors
    /// When the file fails.
    pub async fn release(self) -> Result<bool> {
        self.state.discard(Namespace::Leases, &self.name, Condition::Version(self.fence)).await
    }
}
