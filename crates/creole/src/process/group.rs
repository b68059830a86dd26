//! A process group: signalled as a whole, and watched until nobody is left in it.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};
use tokio::time::{Instant, sleep};

/// How long to wait between two looks at a group that is about to end.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The group that a child leads. Its number stays taken while anybody is in it, so a signal cannot reach
/// strangers as long as nobody waits between a look and a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProcessGroup(Pid);

impl ProcessGroup {
    /// The group led by the process of this number.
    pub(super) fn led_by(pid: u32) -> Option<Self> {
        // To signal group 1 would be to signal everybody (kill(2)).
        i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw).map(Self)
    }

    /// The number that it goes by.
    pub(super) fn id(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Whether nobody is left.
    pub(super) fn is_empty(self) -> bool {
        // Being forbidden to signal somebody proves that somebody is there.
        test_kill_process_group(self.0) == Err(Errno::SRCH)
    }

    /// Asks everybody in the group to end.
    pub(super) fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Ends everybody in the group.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Notices the ends of those whom we have inherited: as the first process of a container we are everybody's
    /// last parent.
    fn reap_orphans(self) {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
    }

    fn signal(self, signal: Signal) {
        // Nobody is left, or only who has become somebody else: neither can be helped.
        let _ = kill_process_group(self.0, signal);
    }

    /// Resolves when nobody is left; false when the time is over first. The leader's own end is somebody else's to
    /// notice; once it has been, `is_led` says no.
    pub(super) async fn wait_until_empty(
        self,
        patience: Duration,
        is_led: impl Fn() -> bool,
    ) -> bool {
        let end = Instant::now() + patience;
        while !self.is_empty() {
            if !is_led() {
                self.reap_orphans();
            }
            if Instant::now() >= end {
                return false;
            }
            sleep(POLL_INTERVAL).await;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_be_taken_for_everybody() {
        for number in [0, 1, u32::MAX, i32::MAX as u32 + 1] {
            assert_eq!(ProcessGroup::led_by(number), None, "{number}");
        }
        assert_eq!(ProcessGroup::led_by(2).map(ProcessGroup::id), Some(2));
    }
}
