//! `libfaketime`, which shows the time of another clock to a program.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::debian::require_programs;
use super::install::Missing;

/// Where distributions install the library, in a folder of the architecture or without one.
const FOLDERS: [&str; 2] = ["/usr/lib", "/usr/local/lib"];

/// The library for programs with threads.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// A clock that is ahead of that of this machine.
#[derive(Clone, Debug)]
pub struct FastClock {
    library: PathBuf,
    ahead: Duration,
}

impl FastClock {
    /// A clock that is this much ahead. Installs the library, if it is missing.
    pub fn ahead_by(ahead: Duration) -> Result<Self, Missing> {
        let remedy = "install libfaketime (Debian: faketime)";
        require_programs(&["faketime"], "faketime", remedy)?;
        let library = find_library();
        let library =
            library.ok_or_else(|| Missing(format!("{LIBRARY} is not found; {remedy}")))?;
        Ok(Self { library, ahead })
    }

    /// Makes a command see this clock. Its monotonic clock, which measures times, stays as it is.
    pub fn show_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library);
        command.env("FAKETIME", format!("+{}s", self.ahead.as_secs()));
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    }
}

fn find_library() -> Option<PathBuf> {
    let folders = FOLDERS.into_iter().map(PathBuf::from).flat_map(|folder| {
        let inside = fs::read_dir(&folder).into_iter().flatten().flatten();
        let inside: Vec<_> = inside.map(|entry| entry.path()).collect();
        inside.into_iter().chain([folder])
    });
    folders.map(|folder| folder.join(LIBRARY)).find(|library| library.exists())
}
