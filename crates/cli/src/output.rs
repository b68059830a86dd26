//! The only place that writes to the terminal: data to stdout, talk to stderr.
//!
//! Nothing is buffered and nothing panics: a reader that went away has all it wanted.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use crate::failure::Failure;

/// Writes the answer of a command to stdout.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Says a line to the person at stderr.
pub(crate) fn talk(text: &str) {
    // Where nobody listens there is nobody to tell.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Asks the person at stderr, who answers in the same line.
#[cfg(unix)]
pub(crate) fn prompt(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Shows help, a version or what is wrong with the command line.
pub(crate) fn usage(notice: &clap::Error) -> ExitCode {
    let _ = notice.print();
    ExitCode::from(u8::try_from(notice.exit_code()).unwrap_or(2))
}
