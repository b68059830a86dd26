//! Random bytes of the system, for unguessable ids.
//!
//! Every id that two processes or two calls must not share is made from these bytes. A failure is returned and never
//! replaced by a constant: two callers with the same id would get each other's responses.

use creole_proto::fault::{Fault, FaultKind};

/// The system has no random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRandomBytes;

impl From<NoRandomBytes> for Fault {
    fn from(_: NoRandomBytes) -> Self {
        Self::new(FaultKind::Internal, "the system provides no random bytes for an id")
    }
}

/// This many random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], NoRandomBytes> {
    #[cfg(test)]
    if failure::is_injected() {
        return Err(NoRandomBytes);
    }
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| NoRandomBytes)?;
    Ok(bytes)
}

/// A system without random bytes, for tests.
#[cfg(test)]
pub(crate) mod failure {
    use std::cell::Cell;

    thread_local! {
        static INJECTED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_injected() -> bool {
        INJECTED.get()
    }

    /// Runs this on a system without random bytes.
    pub(crate) fn during<T>(run: impl FnOnce() -> T) -> T {
        INJECTED.set(true);
        let result = run();
        INJECTED.set(false);
        result
    }
}
