//! Child processes that serve: started without a shell and without our secrets, and ended with all that they
//! started.
//!
//! A child gets a cleared environment, a process group of its own, and pipes. When it is stopped, its standard
//! input is closed first; a group that does not end by itself is asked to, and then made to. A program that
//! leaves its group on purpose escapes this.
//!
//! When this process dies without a chance to stop anything, the children's standard input closes, which every
//! well-behaved server takes for the end. For those that do not, a program can be started by a
//! [launcher](Program::launcher) that has the kernel end it; see [`exec_with_death_signal`].

mod child;
mod environment;
mod group;
mod launch;
mod restart;
mod stderr;

pub(crate) use child::unavailable;
pub use child::{Child, ChildInput, ChildOutput, Exit};
pub use environment::is_inherited;
pub use launch::exec_with_death_signal;
pub use restart::{Restarts, Verdict};
pub use stderr::Tail;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// A program to be started as a child.
#[derive(Clone, Debug)]
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
    /// A program and its first arguments to be put in front of the command, such as one that calls
    /// [`exec_with_death_signal`].
    pub launcher: Vec<OsString>,
    /// How patiently it is ended.
    pub patience: Patience,
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
            launcher: Vec::new(),
            patience: Patience::default(),
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
}

/// How long a child has at each step of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// To end by itself once its standard input is closed.
    pub closed: Duration,
    /// To end once it was asked to by a signal.
    pub asked: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { closed: Duration::from_secs(2), asked: Duration::from_secs(5) }
    }
}

#[cfg(test)]
mod tests;
