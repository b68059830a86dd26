//! A server process under test, with its pipes and its last output.

use std::io::{Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The number of bytes at the end of stderr that are kept for an error message.
pub const LAST_WORDS: usize = 2_000;

/// A running server. Dropping it ends the process.
pub struct Server {
    process: Arc<Mutex<Child>>,
    id: u32,
    input: Option<ChildStdin>,
    output: ChildStdout,
    last_words: Option<JoinHandle<Vec<u8>>>,
    // Dropping it signals the watchdog that the sample is over.
    _alive: Sender<()>,
    allowed: Duration,
}

impl Server {
    /// Starts `command` with pipes. The watchdog kills it if it still runs after `allowed`.
    pub fn spawn(command: &[String], allowed: Duration) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("missing the command to measure")?;
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start `{program}`: {error}"))?;
        let id = process.id();
        let (Some(input), Some(output), Some(errors)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(format!("`{program}` started without pipes"));
        };

        let process = Arc::new(Mutex::new(process));
        let (alive, ended) = mpsc::channel::<()>();
        let watched = Arc::clone(&process);
        std::thread::spawn(move || {
            if ended.recv_timeout(allowed) == Err(RecvTimeoutError::Timeout) {
                // A failure to kill means that the process has already ended.
                let _ = lock(&watched).kill();
            }
        });
        let last_words = Some(std::thread::spawn(move || keep_end(errors)));
        Ok(Self { process, id, input: Some(input), output, last_words, _alive: alive, allowed })
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Writes whole lines to the server.
    pub fn send(&mut self, lines: &[u8]) -> Result<(), String> {
        let input = self.input.as_mut().ok_or("the server's input is already closed")?;
        input.write_all(lines).map_err(|error| format!("cannot write to the server: {error}"))
    }

    /// Reads available output of the server. The end of the output is an error.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        match self.output.read(buffer) {
            Ok(0) => Err(format!(
                "the server exited before it responded, or was killed after {:.0} s",
                self.allowed.as_secs_f64()
            )),
            Ok(count) => Ok(count),
            Err(error) => Err(format!("cannot read from the server: {error}")),
        }
    }

    /// Closes the server's input and waits until it has exited.
    pub fn close(&mut self) -> Result<(), String> {
        self.input = None;
        // The output ends when the process exits or the watchdog kills it.
        let mut rest = Vec::new();
        let read = self.output.read_to_end(&mut rest);
        read.map_err(|error| format!("cannot read from the server: {error}"))?;
        match lock(&self.process).wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(_) => Err("the server failed after its input was closed".to_owned()),
            Err(error) => Err(format!("cannot wait for the server: {error}")),
        }
    }

    /// Adds to `error` how the process ended and what it wrote to stderr.
    pub fn explain(&mut self, error: &str) -> String {
        // A crashing process gets time to exit, so that its own status is shown.
        std::thread::sleep(Duration::from_millis(100));
        let status = match lock(&self.process).try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "still running".to_owned(),
        };
        self.end();
        let words =
            self.last_words.take().and_then(|thread| thread.join().ok()).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let words = if words.trim().is_empty() { "(nothing)" } else { words.trim() };
        format!("{error}\nits process: {status}\nits stderr: {words}")
    }

    fn end(&mut self) {
        let mut process = lock(&self.process);
        // Both fail only if the process has already ended.
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock(process: &Mutex<Child>) -> MutexGuard<'_, Child> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads stderr to its end, so that the server never blocks on it, and keeps the last bytes.
fn keep_end(mut errors: ChildStderr) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = errors.read(&mut buffer) {
        kept.extend_from_slice(&buffer[..count]);
        let surplus = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..surplus);
    }
    kept
}
