//! Raises the limit of open descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open descriptors of this process, and of every process that it starts from now on, to the
/// maximum of the system. Returns the limit.
#[must_use]
pub fn descriptors() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If it cannot be raised, the current limit applies.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(1 << 20)
}
