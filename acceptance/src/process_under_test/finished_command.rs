//! A command that has ended: its exit code and its output.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::canaries;

/// The exit code and the output of a command.
#[derive(Debug, PartialEq)]
pub struct FinishedCommand {
    /// The exit code, or `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error output.
    pub stderr: String,
}

impl FinishedCommand {
    /// Runs a command with this text on stdin.
    ///
    /// # Panics
    /// When the command cannot be started or its output is not UTF-8.
    #[track_caller]
    #[must_use]
    pub fn run(command: &mut Command, stdin: &str) -> Self {
        output_of(command, stdin).into()
    }

    /// Asserts that the command succeeded.
    ///
    /// # Panics
    /// When the exit code is not 0.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }
}

impl From<Output> for FinishedCommand {
    #[track_caller]
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        let Output { status, stdout, stderr } = output;
        let (stdout, stderr) = (text(stdout), text(stderr));
        canaries::assert_absent("the errors of a command", &stderr);
        Self { code: status.code(), stdout, stderr }
    }
}

/// Runs a command with this text on stdin, and returns its output as bytes.
///
/// # Panics
/// When the command cannot be started.
#[track_caller]
#[must_use]
pub fn output_of(command: &mut Command, stdin: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    // Most commands do not read it, and may have ended already.
    let _ = child.stdin.take().expect("a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("the command ends")
}
