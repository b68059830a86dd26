//! `creole reap`, the reaper process: ends the programs of a gateway that was killed and could not do it itself.

use std::io;
use std::time::Duration;

use creole::client::Address;
use creole::internal::process::{Reaper, run_reaper};

use crate::instance::start_reaper;

/// How long programs have to exit before they are signalled.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Runs the reaper.
pub(crate) fn run() {
    run_reaper(io::stdin().lock(), GRACE_PERIOD);
}

/// Attaches all programs among these addresses to one reaper: this one, or a new one. If none can be started, the
/// programs must notice the end of their input. Returns the reaper for later calls.
pub(crate) fn attach_reaper<'a>(
    addresses: impl Iterator<Item = &'a mut Address>,
    reaper: Option<Reaper>,
) -> Option<Reaper> {
    creole_config::attach_reaper(addresses, reaper, start_reaper)
}
