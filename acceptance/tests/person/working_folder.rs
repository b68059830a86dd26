//! A folder to run commands in, with a pipe or a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, thread};

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tempfile::TempDir;

/// A folder in which commands run, which is also the data directory and the home directory.
pub(crate) struct Sandbox(TempDir);

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        let folder = path.parent().expect("it is below the folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(&path, text).expect("the folder can be written");
        path
    }

    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("it is there")
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary().expect("the binary under test"));
        command.args(words).current_dir(self.path());
        command.env("CREOLE_DATA_DIR", self.path()).env("HOME", self.path()).env("TERM", "xterm");
        for name in ["NO_COLOR", "XDG_CONFIG_HOME", "COLUMNS"] {
            command.env_remove(name);
        }
        command
    }

    /// Runs `creole` with pipes and an empty stdin.
    pub(crate) fn run(&self, words: &[&str]) -> FinishedCommand {
        FinishedCommand::run(&mut self.command(words), "")
    }
}

/// Both ends of a terminal of this width: the user's and the process's.
fn terminal(width: u16) -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&person).expect("it may be used");
    unlockpt(&person).expect("it is unlocked");
    let size = Winsize { ws_row: 24, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&person, size).expect("it has a size");
    let name = ptsname(&person, Vec::new()).expect("a name").into_string().expect("UTF-8");
    let process = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
    (File::from(person), process)
}

/// The text on a terminal of this width when a command runs at it with this typed input. All standard streams are the
/// terminal.
pub(crate) fn at_terminal(command: &mut Command, width: u16, typed: &str) -> (Option<i32>, String) {
    let (mut person, process) = terminal(width);
    person.write_all(typed.as_bytes()).expect("the terminal takes it");
    let handle = || process.try_clone().expect("a handle");
    let mut child =
        command.stdin(handle()).stderr(handle()).stdout(handle()).spawn().expect("the binary runs");
    // Only the child must have the terminal open, so that reading ends when the child exits. The `Command` of this
    // process holds it as well.
    command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null());
    drop(process);
    let reading = thread::spawn(move || {
        let (mut shown, mut chunk) = (Vec::new(), [0; 4096]);
        // After the last process has closed the terminal, a read returns an error.
        while let Ok(count @ 1..) = person.read(&mut chunk) {
            shown.extend_from_slice(&chunk[..count]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    });
    let code = child.wait().expect("the command ends").code();
    (code, reading.join().expect("it was read"))
}
