//! A process group: signalled as a whole, and watched until it is empty.

use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, test_kill_process_group, waitpgid,
};
use tokio::time::{Instant, sleep};

/// The interval between two checks of a group that is ending.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The group that a child leads. Its id stays in use while any process is in it. So a signal cannot reach unrelated
/// processes, as long as no wait is between the check and the signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProcessGroup(Pid);

impl ProcessGroup {
    /// The group led by this process.
    pub(super) fn led_by(pid: u32) -> Option<Self> {
        // A signal to group 1 would go to every process (kill(2)).
        i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw).map(Self)
    }

    /// Its id.
    pub(super) fn id(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    /// Whether no process is left.
    pub(super) fn is_empty(self) -> bool {
        // A permission error proves that a process is there.
        test_kill_process_group(self.0) == Err(Errno::SRCH)
    }

    /// Sends SIGTERM to all processes in the group.
    pub(super) fn terminate(self) {
        self.signal(Signal::TERM);
    }

    /// Kills all processes in the group.
    pub(super) fn kill(self) {
        self.signal(Signal::KILL);
    }

    /// Reaps orphans: as the first process of a container we are the last parent of every process.
    fn reap_orphans(self) {
        while let Ok(Some(_)) = waitpgid(self.0, WaitOptions::NOHANG) {}
    }

    fn signal(self, signal: Signal) {
        // The group is empty, or its processes changed their user: neither can be helped.
        let _ = kill_process_group(self.0, signal);
    }

    /// Resolves when the group is empty; false if the time is over first. Other code reaps the leader; once it has,
    /// `is_led` is false.
    pub(super) async fn wait_until_empty(
        self,
        timeout: Duration,
        is_led: impl Fn() -> bool,
    ) -> bool {
        let end = Instant::now() + timeout;
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
    fn a_process_group_is_never_minus_one() {
        for number in [0, 1, u32::MAX, i32::MAX as u32 + 1] {
            assert_eq!(ProcessGroup::led_by(number), None, "{number}");
        }
        assert_eq!(ProcessGroup::led_by(2).map(ProcessGroup::id), Some(2));
    }
}
