//! A folder to run commands in, with a pipe or a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use creole_acceptance::process_under_test::finished_command::FinishedCommand;
use creole_acceptance::stage::stdio::binary;
use creole_test_wait::blocking::eventually;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
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

/// A command that runs at a terminal, at which a user types and reads.
pub(crate) struct TerminalSession {
    child: Child,
    person: File,
    /// The end of the process, which keeps the modes that the process left.
    process: File,
    shown: Arc<Mutex<String>>,
    /// How much of the shown text was waited for.
    seen: usize,
}

impl TerminalSession {
    /// Starts a command at a terminal of this width. All standard streams are the terminal.
    pub(crate) fn start(command: &mut Command, width: u16) -> Self {
        let (person, process) = terminal(width);
        let handle = || process.try_clone().expect("a handle");
        let child = command.stdin(handle()).stderr(handle()).stdout(handle()).spawn();
        let child = child.expect("the binary runs");
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(Stdio::null());
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut screen, kept) = (person.try_clone().expect("a handle"), Arc::clone(&shown));
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..count]);
                kept.lock().expect("no panic").push_str(&text);
            }
        });
        Self { child, person, process, shown, seen: 0 }
    }

    fn text(&self) -> String {
        self.shown.lock().expect("no panic").clone()
    }

    /// Waits until this text is shown, after the text that was waited for before.
    #[track_caller]
    pub(crate) fn until_shown(&mut self, text: &str) {
        let missing = || format!("`{text}` is not shown:\n{:?}", &self.text()[self.seen..]);
        let end = eventually(missing, || {
            let shown = self.text();
            shown[self.seen..].find(text).map(|at| self.seen + at + text.len())
        });
        self.seen = end;
    }

    /// Presses keys.
    pub(crate) fn press(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).expect("the terminal takes it");
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the command. Returns its code and whether the terminal echoes again.
    pub(crate) fn end(&mut self) -> (Option<i32>, bool) {
        let ended = || self.child.try_wait().expect("its status");
        let status = eventually("the command does not end", ended);
        let modes = tcgetattr(&self.process).expect("its modes").local_modes;
        (status.code(), modes.contains(LocalModes::ECHO | LocalModes::ICANON))
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
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
