//! Child processes that run servers: started without a shell and without our secrets, and ended with all their
//! descendants.
//!
//! A child gets a cleared environment, its own process group, pipes, and no other descriptor: every descriptor that is
//! open in this process, inherited ones included, is marked close-on-exec. To stop a child, its standard input is
//! closed first. A group that does not exit is then signalled, and finally killed. A program that leaves its
//! group on purpose escapes this.
//!
//! When this process dies without stopping its children, their standard input closes, which every well-behaved server
//! treats as the end. A [`Reaper`] ends the others.

mod child;
mod environment;
mod group;
mod program_meter;
mod reaper;
mod restart_policy;
mod stderr;

pub(crate) use child::unavailable_fault;
pub use child::{Child, ChildInput, ChildOutput, Exit};
pub use program_meter::{ProcessUsage, ProgramMeter, own_usage};
pub use reaper::{Reaper, run_reaper};
pub use restart_policy::{RestartDecision, RestartPolicy};
pub use stderr::StderrTail;

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;

/// A program to start as a child.
#[derive(Clone)]
#[non_exhaustive]
pub struct Program {
    /// The name in messages. The command line may hold secrets and is never shown.
    pub name: String,
    /// The program: a path, or a name that is looked up on `PATH`.
    pub command: OsString,
    /// Its arguments, passed unchanged.
    pub args: Vec<OsString>,
    /// Environment entries besides the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; ours if not given.
    pub folder: Option<PathBuf>,
    /// The reaper that ends the child and its descendants if this process dies first.
    #[doc(hidden)]
    pub reaper: Option<Reaper>,
    /// How long the child has to end.
    pub grace_periods: GracePeriods,
    /// Whether its standard error and its exit are logged.
    #[doc(hidden)]
    pub log_stderr: bool,
    /// Measures its processes.
    #[doc(hidden)]
    pub meter: Option<Arc<ProgramMeter>>,
}

impl Program {
    /// A program with only a name for messages and a command.
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
            meter: None,
        }
    }

    /// The same program with these arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// The same program with an additional environment entry.
    #[must_use]
    pub fn env(mut self, key: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((key.into(), value.into()));
        self
    }

    /// The same program with these environment entries. Its own ones win.
    pub(crate) fn with_environment(&self, entries: &[(OsString, OsString)]) -> Cow<'_, Self> {
        if entries.is_empty() {
            return Cow::Borrowed(self);
        }
        let env = entries.iter().chain(&self.env).cloned().collect();
        Cow::Owned(Self { env, ..self.clone() })
    }

    /// The command that starts it: no shell, only the child's own environment, its own process group.
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
    /// Omits the command line and the environment, which may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Program").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How long a child has at each step of its termination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GracePeriods {
    /// Time to exit after its standard input is closed.
    pub after_close: Duration,
    /// Time to end after it was signalled.
    pub after_signal: Duration,
}

impl Default for GracePeriods {
    fn default() -> Self {
        Self { after_close: Duration::from_secs(2), after_signal: Duration::from_secs(5) }
    }
}

/// The first descriptor that is not a standard stream.
const FIRST_INHERITABLE: i32 = 3;

/// Keeps every descriptor except the standard streams from children. Descriptors that we open are marked from the
/// start. The process that started us may have left others open, which would pass through us to every program.
fn set_close_on_exec() {
    close_fds::set_fds_cloexec_threadsafe(FIRST_INHERITABLE, &[]);
}

#[cfg(test)]
mod tests;
