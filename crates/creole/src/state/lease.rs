//! Leases: exclusive rights for a limited time.

use std::sync::Arc;
use std::time::Duration;

use super::{Condition, Namespace, Result, State};

/// A lease that is held. No other holder gets it before it is released or expires.
///
/// A holder that was suspended for longer than that does not notice. So use [`Lease::fence`] to guard operations that
/// only one holder may perform: the receiver rejects a number that is lower than an earlier one.
///
/// Dropping it does not release it, because that may have to wait for a file; it then expires.
#[derive(Debug)]
#[must_use = "the lease is held until it is released or expires"]
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

    /// Extends the lease to `ttl` from now. False once it has expired: another holder may have had it since, so it must
    /// be taken again, which gives a new fencing number.
    ///
    /// # Errors
    /// When the file fails.
    pub async fn renew(&self, ttl: Duration) -> Result<bool> {
        let held = Condition::Version(self.fence);
        self.state.prolong(Namespace::Leases, &self.name, held, Some(ttl)).await
    }

    /// Releases it at once. False when it had already expired.
    ///
    /// # Errors
    /// When the file fails.
    pub async fn release(self) -> Result<bool> {
        self.state.discard(Namespace::Leases, &self.name, Condition::Version(self.fence)).await
    }
}
