//! The process that ends the programs behind a gateway which was killed and could not do it itself.

use std::io;
use std::time::Duration;

use creole::client::Address;
use creole::process::{Reaper, run_reaper};

/// How long programs have to end by themselves.
const GRACE_PERIOD: Duration = Duration::from_secs(5);

/// The guardian's own work.
pub(crate) fn run() {
    run_reaper(io::stdin().lock(), GRACE_PERIOD);
}

/// Has the programs among these ways guarded, all by one guardian: this one, or one that is started for them. Where
/// none can be started, they are left to notice that their input ends. Returns the guardian, for those that follow.
pub(crate) fn attach_reaper<'a>(
    ways: impl Iterator<Item = &'a mut Address>,
    mut guardian: Option<Reaper>,
) -> Option<Reaper> {
    for way in ways {
        if let Address::Child(program) = way {
            guardian = guardian.or_else(start);
            program.reaper.clone_from(&guardian);
        }
    }
    guardian
}

/// Starts a guardian, if that can be done.
pub(crate) fn start() -> Option<Reaper> {
    let started = std::env::current_exe().and_then(|this| Reaper::start(this, ["guard"]));
    started.inspect_err(|error| tracing::warn!("no guardian for child processes: {error}")).ok()
}
