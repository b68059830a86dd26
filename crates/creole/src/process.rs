//! Child processes that serve: started without a shell and without our secrets, and ended with all that they
//! started.
//!
//! A child gets a cleared environment, a process group of its own, pipes, and no other descriptor: whatever stands
//! open in this process, also what it was started with, is marked to be closed when a program is run. When a child
//! is stopped, its standard input is closed first; a group that does not end by itself is asked to, and then made
//! to. A program that leaves its group on purpose escapes this.
//!
//! When this process dies without a chance to stop anything, the children's standard input closes, which every
//! well-behaved server takes for the end. For the others there may be a [`Reaper`].

mod child;
mod descriptors;
mod environment;
mod group;
mod reaper;
mod restart_policy;
mod stderr;

pub(crate) use child::unavailable_fault;
pub use child::{Child, ChildInput, ChildOutput, Exit};
pub use environment::is_inherited;
pub use reaper::{Reaper, run_reaper};
pub use restart_policy::{RestartDecision, RestartPolicy};
pub use stderr::StderrTail;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// A program to be started as a child.
#[derive(Clone)]
pub struct Program {
    /// What it is called in messages; its command line may hold secrets and is never shown.
    pub name: String,
    /// The program: a path, or a name to be found on `PATH`.
    pub command: OsString,
    /// Its arguments, each as it is.
    pub args: Vec<OsString>,
    /// Entries of its environment besides those that are [inherited](is_inherited).
    pub env: Vec<(OsString, OsString)>,
    /// The folder it runs in; ours if not given.
    pub folder: Option<PathBuf>,
    /// Who ends it, with all that it started, if this process dies first.
    pub reaper: Option<Reaper>,
    /// How patiently it is ended.
    pub grace_periods: GracePeriods,
    /// Whether what it writes to its standard error, and how it ends, is logged.
    pub log_stderr: bool,
}

impl Program {
    /// A program with nothing but a name for messages and a command.
    pub fn new(name: impl Into<String>, command: impl Into<OsString>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            folder: None,
            reaper: None,
            grace_periods: GracePeriods::default(),
            log_stderr: true,
        }
    }

    /// The same program with these arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// The same program with an entry of its environment.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// What starts it: no shell, no environment but the child's own, a group of its own.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.command);
        command
            .args(&self.args)
            .env_clear()
            .envs(environment::child_environment(std::env::vars_os(), &self.env))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        if let Some((name, mark)) = self.reaper.as_ref().and_then(Reaper::mark) {
            command.env(name, mark);
        }
        command
    }
}

impl fmt::Debug for Program {
    /// Without its command line and environment, which may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Program").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long a child has at each step of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// To end by itself once its standard input is closed.
    pub after_close: Duration,
    /// To end once it was asked to by a signal.
    pub after_signal: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self { after_close: Duration::from_secs(2), after_signal: Duration::from_secs(5) }
    }
}

#[cfg(test)]
mod tests;
