//! A process group: signalled as a whole, and watched until nobody is left in it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::time::{Instant, sleep};

/// How long to wait between two looks at a group that is about to end.
const LOOK: Duration = Duration::from_millis(10);

/// The group that a child leads. Its number stays taken while anybody is in it, so a signal cannot reach
/// strangers as long as nobody waits between a look and a signal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group(Pid);

impl Group {
    /// The group led by the process of this number.
    pub(super) fn led_by(pid: u32) -> Option<Self> {
        i32::try_from(pid).ok().and_then(Pid::from_raw).map(Self)
    }

    /// Whether nobody is left.
    pub(super) fn is_empty(self) -> bool {
        // Being forbidden to signal somebody proves that somebody is there.
        test_kill_process_group(self.0) == Err(Errno::SRCH)
    }

    /// Asks everybody in the group to end.
    pub(super) fn ask(self) {
        self.signal(Signal::TERM);
    }

    /// Ends everybody in the group.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    fn signal(self, signal: Signal) {
        // Nobody is left, or only who has become somebody else: neither can be helped.
        let _ = kill_process_group(self.0, signal);
    }

    /// Resolves when nobody is left; false when the time is over first.
    pub(super) async fn ends_within(self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while !self.is_empty() {
            if Instant::now() >= end {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }
}
