//! The reaper: a process that briefly outlives this one, to end the children that this one could not end.
//!
//! When this process is killed, its children's standard input closes, and most of them end. For the others, and for
//! their descendants, the reaper receives every group; when this process has ended, it ends the remaining groups. The
//! kernel's own death signal would reach only the children themselves, and would also be sent when only the thread that
//! started them ends (prctl(2), `PR_SET_PDEATHSIG`).
//!
//! This process may be killed after a child was started and before the reaper received its group. So children carry a
//! mark in their environment, and the reaper searches for it. Until a child executes its program, it also holds our end
//! of the reaper's input: when that input ends, every child can be recognised.

use crate::sync::Mutex;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use super::group::{POLL_INTERVAL, ProcessGroup};
use super::set_close_on_exec;

/// The reaper of our children. Clones share it; it ends when the last of them is dropped.
#[derive(Clone, Debug)]
pub struct Reaper {
    process: Arc<Mutex<ReaperProcess>>,
    /// The mark in the environment of children.
    mark: Option<Arc<str>>,
}

/// The environment variable with the reaper's mark.
const REAPER_MARK: &str = "CREOLE_REAPER_MARK";

/// What systemd tells the process that it started, and no other one.
const SERVICE_MANAGER_VARIABLES: [&str; 6] = [
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

#[derive(Debug)]
struct ReaperProcess(Child);

impl Reaper {
    /// Starts a program that calls [`run_reaper`], mostly this executable with other arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        command: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let mut command = Command::new(command);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        set_close_on_exec();
        for name in SERVICE_MANAGER_VARIABLES.into_iter().chain([REAPER_MARK]) {
            command.env_remove(name);
        }
        // Its own group: a terminal's signals to us are not for it.
        let child = command.process_group(0).spawn()?;
        let mark: Option<Arc<str>> = crate::task::random_id().ok().map(Into::into);
        let reaper = Self { process: Arc::new(Mutex::new(ReaperProcess(child))), mark };
        if let Some(mark) = &reaper.mark {
            reaper.send_line(&format!("={mark}\n"));
        }
        Ok(reaper)
    }

    /// The environment entry by which a child can be recognised.
    pub(super) fn mark(&self) -> Option<(&'static str, &str)> {
        self.mark.as_deref().map(|mark| (REAPER_MARK, mark))
    }

    pub(super) fn watch(&self, group: ProcessGroup) {
        self.send_line(&format!("+{}\n", group.id()));
    }

    pub(super) fn forget(&self, group: ProcessGroup) {
        self.send_line(&format!("-{}\n", group.id()));
    }

    fn send_line(&self, line: &str) {
        let mut process = self.process.lock();
        if let Some(stdin) = &mut process.0.stdin
            && let Err(error) = stdin.write_all(line.as_bytes())
        {
            tracing::warn!("the reaper of child processes has exited: {error}");
            process.0.stdin = None;
        }
    }
}

impl Drop for ReaperProcess {
    fn drop(&mut self) {
        // No child is left, so the reaper ends at once.
        self.0.stdin = None;
        let _ = self.0.wait();
    }
}

/// Records the groups in the input until it ends, and then ends the remaining ones: by a signal, and after `patience`
/// by a kill. This is the `main` of a reaper.
pub fn run_reaper(input: impl BufRead, timeout: Duration) {
    let (mut groups, mut mark) = (HashSet::new(), None);
    for line in input.lines().map_while(Result::ok) {
        if let Some(message) = line.strip_prefix('=') {
            mark = Some(message.to_owned());
            continue;
        }
        let number = line.get(1..).and_then(|number| number.parse().ok());
        match (line.as_bytes().first(), number.and_then(ProcessGroup::led_by)) {
            (Some(b'+'), Some(group)) => _ = groups.insert(group),
            (Some(b'-'), Some(group)) => _ = groups.remove(&group),
            _ => {}
        }
    }
    groups.extend(mark.iter().flat_map(|mark| find_marked_groups(mark)));
    groups.iter().for_each(|group| group.terminate());
    let end = Instant::now() + timeout;
    while groups.iter().any(|group| !group.is_empty()) && Instant::now() < end {
        thread::sleep(POLL_INTERVAL);
    }
    groups.iter().for_each(|group| group.kill());
}

/// The groups of all children that carry the mark, from Linux's `/proc`; empty on other systems.
fn find_marked_groups(mark: &str) -> Vec<ProcessGroup> {
    let wanted = format!("{REAPER_MARK}={mark}");
    let is_marked = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().map_while(Result::ok);
    let numbered = processes.filter_map(|process| {
        Some((process.file_name().to_str()?.parse::<u32>().ok()?, process.path()))
    });
    let ours = numbered
        .filter(|(number, process)| is_marked(process) && is_group_leader(*number, process));
    ours.filter_map(|(number, _)| ProcessGroup::led_by(number)).collect()
}

/// Whether a process leads a group, and not a session: a process that left on purpose is not ours (proc_pid_stat(5)).
fn is_group_leader(number: u32, process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name may contain anything; it is followed by the state, the parent, the group and the session.
    let after = stat.rsplit_once(") ").map_or("", |(_, after)| after);
    let mut numbers = after.split(' ').skip(2).map(|text| text.parse().ok());
    let (group, session) = (numbers.next().flatten(), numbers.next().flatten());
    group == Some(number) && session != Some(number)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use creole_test_wait::blocking::eventually;

    use super::*;

    #[test]
    fn an_unregistered_child_is_recognised_by_its_mark() {
        let start = |mark: &str| {
            let mut command = Command::new("sleep");
            let child = command.arg("60").env(REAPER_MARK, mark).process_group(0).spawn().unwrap();
            // Linux lets the parent go on before the environment of the new program can be read.
            let environment = format!("/proc/{}/environ", child.id());
            eventually("the environment can be read", || {
                !fs::read(&environment).unwrap().is_empty()
            });
            child
        };
        let (mut own, mut other) = (start("own-mark-of-the-test"), start("another"));
        run_reaper("=own-mark-of-the-test\n".as_bytes(), Duration::from_millis(50));
        assert!(own.wait().unwrap().signal().is_some());
        assert!(other.try_wait().unwrap().is_none(), "the process has another mark");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}
