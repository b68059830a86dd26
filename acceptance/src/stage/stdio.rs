//! The stage `stdio`: the real binary as a child process, on its standard streams.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use std::{env, thread};

use creole_test_wait::blocking::{delay, within};
use tempfile::TempDir;

use super::Stage;

/// The name in a `Skip` header.
pub const NAME: &str = "stdio";

/// How long the server may take to exit after its input ended.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long a report waits for the end of the log.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// The maximum real wait.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A running server with its own empty data directory. It is killed when dropped.
pub struct StdioChild {
    child: Child,
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<String>,
    log: Arc<Mutex<String>>,
    logger: Option<JoinHandle<()>>,
    _data: Option<TempDir>,
}

impl StdioChild {
    /// Starts `creole serve` with these arguments, in the repository root.
    pub fn serve(words: &[String]) -> Result<Self, String> {
        let data = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut command = Command::new(binary()?);
        command.arg("serve").args(words).current_dir(repository());
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("CREOLE_") {
                command.env_remove(name);
            }
        }
        command.env("CREOLE_DATA_DIR", data.path());
        let mut child = Self::start(command)?;
        child._data = Some(data);
        Ok(child)
    }

    /// Starts any other program that uses its standard streams.
    pub fn start(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let (input, to_write) = channel();
        let (sender, output) = channel();
        let log = Arc::new(Mutex::new(String::new()));
        if let Some(stdin) = child.stdin.take() {
            thread::spawn(move || write_all(stdin, &to_write));
        }
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_lines(stdout, &sender));
        }
        let logger = child.stderr.take().map(|stderr| {
            let log = Arc::clone(&log);
            thread::spawn(move || read_log(stderr, &log))
        });
        Ok(Self { child, input: Some(input), output, log, logger, _data: None })
    }

    fn wait_for_exit(&mut self) -> Result<(), String> {
        let ended = within(FAREWELL, || self.child.try_wait().transpose());
        match ended {
            Some(Ok(status)) if status.success() => Ok(()),
            Some(Ok(status)) => Err(status.to_string()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err(format!("still running {FAREWELL:?} after its input ended")),
        }
    }
}

impl Stage for StdioChild {
    fn send(&mut self, bytes: &[u8]) {
        if let Some(input) = &self.input {
            // If the server is gone, the next expectation fails.
            let _ = input.send(bytes.to_vec());
        }
    }

    fn receive(&mut self, wait: Duration) -> Option<String> {
        self.output.recv_timeout(wait).ok()
    }

    fn advance(&mut self, by: Duration) -> bool {
        let short = by < LONGEST_WAIT;
        if short {
            delay(by);
        }
        short
    }

    fn close(&mut self) -> Result<(), String> {
        self.input = None;
        self.wait_for_exit()
    }

    fn notes(&mut self) -> String {
        // The last output of a server that has just ended may still be in transit.
        let _ = within(LAST_WORDS, || self.logger.as_ref().is_none_or(JoinHandle::is_finished));
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for StdioChild {
    fn drop(&mut self) {
        // Fails only if the child has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary under test: `CREOLE_BIN`, or the one that the same build placed beside the tests.
pub fn binary() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("CREOLE_BIN") {
        return existing(PathBuf::from(path));
    }
    beside("creole")
}

/// A program that the same build placed beside the tests.
pub fn beside(name: &str) -> Result<PathBuf, String> {
    let test = env::current_exe().map_err(|error| error.to_string())?;
    let profile = test.parent().and_then(Path::parent).ok_or("no directory of the build")?;
    existing(profile.join(format!("{name}{}", env::consts::EXE_SUFFIX)))
}

fn existing(path: PathBuf) -> Result<PathBuf, String> {
    if path.is_file() {
        return Ok(path);
    }
    Err(format!("{} does not exist: run `cargo build -p creole-cli` first", path.display()))
}

/// The directory that paths in a `Server` header start from.
#[must_use]
pub fn repository() -> PathBuf {
    let acceptance = Path::new(env!("CARGO_MANIFEST_DIR"));
    acceptance.parent().unwrap_or(acceptance).to_owned()
}

/// Writes in its own thread, so that a server that does not read cannot block the test.
fn write_all(mut stdin: ChildStdin, to_write: &Receiver<Vec<u8>>) {
    for bytes in to_write {
        if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

/// Forwards lines. A problem of a line is written into it, so that it matches nothing.
fn read_lines(stdout: impl Read, sender: &Sender<String>) {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        if !matches!(reader.read_until(b'\n', &mut line), Ok(1..)) {
            return;
        }
        let complete = line.pop_if(|last| *last == b'\n').is_some();
        let mut text = match String::from_utf8(line) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned() + " (not UTF-8)",
        };
        if !complete {
            text.push_str(" (no newline at its end)");
        }
        if sender.send(text).is_err() {
            return;
        }
    }
}

fn read_log(stderr: impl Read, log: &Mutex<String>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push_str(&String::from_utf8_lossy(&line));
        log.push('\n');
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn shell(script: &str) -> StdioChild {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        StdioChild::start(command).expect("a shell")
    }

    #[test]
    fn lines_are_written_and_read_and_the_exit_is_clean() {
        let mut child = shell("cat");
        child.send(b"one\ntwo\n");
        assert_eq!(child.receive(SOON).as_deref(), Some("one"));
        assert_eq!(child.receive(SOON).as_deref(), Some("two"));
        assert_eq!(child.close(), Ok(()));
        assert_eq!(child.receive(SOON), None);
    }

    #[test]
    fn a_bad_exit_is_an_error_and_its_log_a_note() {
        let mut child = shell("read line; echo oh no >&2; exit 3");
        child.send(b"go\n");
        assert_eq!(child.receive(SOON), None);
        assert_eq!(child.close(), Err("exit status: 3".to_owned()));
        assert_eq!(child.notes(), "oh no\n");
    }

    #[test]
    fn a_server_that_exits_is_detected_at_once() {
        let start = Instant::now();
        assert_eq!(shell("exit 0").receive(Duration::from_secs(60)), None);
        assert!(start.elapsed() < SOON);
    }

    #[test]
    fn bytes_that_are_not_a_valid_line_are_marked() {
        let mut child = shell(r"printf '\377\n{}'");
        assert_eq!(child.receive(SOON).as_deref(), Some("\u{fffd} (not UTF-8)"));
        assert_eq!(child.receive(SOON).as_deref(), Some("{} (no newline at its end)"));
    }

    #[test]
    fn a_server_that_never_reads_does_not_block_the_test() {
        let mut child = shell("echo ready; exec sleep 60");
        child.send(&vec![b'a'; 1 << 20]);
        assert_eq!(child.receive(SOON).as_deref(), Some("ready"));
    }

    #[test]
    fn only_short_waits_are_real() {
        let mut child = shell("cat");
        assert!(child.advance(Duration::from_millis(1)));
        assert!(!child.advance(Duration::from_secs(30)));
    }
}
