//! A process that outlives us for a moment, to end the children that we could not end.
//!
//! When this process is killed, its children's standard input closes, and most of them end. For the others, and
//! for what they started, a guardian is told of every group; when we are gone, it ends those that are left. The
//! kernel's own death signal would reach only the children themselves, and would be sent as well when nothing but
//! the thread that started them ends (prctl(2), `PR_SET_PDEATHSIG`).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::group::{Group, LOOK};

/// The guardian of our children. Clones are the same one; it ends when the last of them is dropped.
#[derive(Clone, Debug)]
pub struct Guardian(Arc<Mutex<Process>>);

#[derive(Debug)]
struct Process(Child);

impl Guardian {
    /// Starts a program that calls [`guard`], mostly this one again with other arguments.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(
        command: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> io::Result<Self> {
        let mut command = Command::new(command);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        // A group of its own: what a terminal tells us is not for it.
        let child = command.process_group(0).spawn()?;
        Ok(Self(Arc::new(Mutex::new(Process(child)))))
    }

    pub(super) fn watch(&self, group: Group) {
        self.tell('+', group);
    }

    pub(super) fn forget(&self, group: Group) {
        self.tell('-', group);
    }

    fn tell(&self, sign: char, group: Group) {
        let mut process = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stdin) = &mut process.0.stdin
            && let Err(error) = stdin.write_all(format!("{sign}{}\n", group.number()).as_bytes())
        {
            tracing::warn!("the guardian of child processes is gone: {error}");
            process.0.stdin = None;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing is left to be guarded, so that this takes no time.
        self.0.stdin = None;
        let _ = self.0.wait();
    }
}

/// Guards what it is told of until the input ends, and then ends what is left: by asking, and after `patience`
/// by force. The `main` of a guardian.
pub fn guard(input: impl BufRead, patience: Duration) {
    let mut groups = HashSet::new();
    for line in input.lines().map_while(Result::ok) {
        let number = line.get(1..).and_then(|number| number.parse().ok());
        match (line.as_bytes().first(), number.and_then(Group::led_by)) {
            (Some(b'+'), Some(group)) => _ = groups.insert(group),
            (Some(b'-'), Some(group)) => _ = groups.remove(&group),
            _ => {}
        }
    }
    groups.iter().for_each(|group| group.ask());
    let end = Instant::now() + patience;
    while groups.iter().any(|group| !group.is_empty()) && Instant::now() < end {
        thread::sleep(LOOK);
    }
    groups.iter().for_each(|group| group.kill());
}
