//! A server process under test that prints its address on stderr.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::PATIENCE;
use crate::server::LAST_WORDS;

/// A running server. Dropping it ends the process.
pub struct Process {
    child: Arc<Mutex<Child>>,
    id: u32,
    address: SocketAddr,
    words: Arc<Mutex<String>>,
    // Dropping it signals the watchdog that the sample is over.
    _alive: Sender<()>,
}

impl Process {
    /// Starts `command` and waits until it listens. The watchdog kills it if it still runs after `allowed`.
    pub fn spawn(command: &[String], allowed: Duration) -> Result<Self, String> {
        Self::start(command, allowed, None)
    }

    /// Starts a server that does not print its address. It listens at `address`, possibly only later.
    pub fn spawn_at(
        address: SocketAddr,
        command: &[String],
        allowed: Duration,
    ) -> Result<Self, String> {
        Self::start(command, allowed, Some(address))
    }

    fn start(
        command: &[String],
        allowed: Duration,
        told: Option<SocketAddr>,
    ) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("missing the command to measure")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start `{program}`: {error}"))?;
        let id = child.id();
        let errors = child.stderr.take().ok_or("the server started without a stderr")?;
        let child = Arc::new(Mutex::new(child));
        let (alive, ended) = mpsc::channel::<()>();
        let watched = Arc::clone(&child);
        std::thread::spawn(move || {
            if ended.recv_timeout(allowed) == Err(RecvTimeoutError::Timeout) {
                // A failure to kill means that the process has already ended.
                let _ = lock(&watched).kill();
            }
        });

        let words = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&words);
        let (heard, address) = mpsc::channel();
        std::thread::spawn(move || read(errors, &kept, &heard));
        let said = || {
            address.recv_timeout(PATIENCE).map_err(|_| {
                end(&child);
                let words = words.lock().unwrap_or_else(PoisonError::into_inner);
                format!("the server did not print `listens on http://…`; its stderr: {words}")
            })
        };
        let address = told.map_or_else(said, Ok)?;
        Ok(Self { child, id, address, words, _alive: alive })
    }

    /// The id of the process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the process has ended.
    pub fn is_over(&self) -> bool {
        !matches!(lock(&self.child).try_wait(), Ok(None))
    }

    /// Adds to `error` how the process ended and what it wrote to stderr.
    pub fn explain(&self, error: &str) -> String {
        // A crashing process gets time to exit, so that its own status is shown.
        std::thread::sleep(Duration::from_millis(100));
        let status = match lock(&self.child).try_wait() {
            Ok(Some(status)) => status.to_string(),
            _ => "still running".to_owned(),
        };
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{error}\nits process: {status}\nits stderr: {}", words.trim())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        end(&self.child);
    }
}

fn end(child: &Mutex<Child>) {
    let mut child = lock(child);
    // Both fail only if the process has already ended.
    let _ = child.kill();
    let _ = child.wait();
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads stderr to its end, so that the server never blocks on it, and keeps the last lines.
fn read(errors: ChildStderr, words: &Mutex<String>, heard: &Sender<SocketAddr>) {
    for line in BufReader::new(errors).lines().map_while(Result::ok) {
        if let Some(address) = listening(&line) {
            let _ = heard.send(address);
        }
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.push_str(&line);
        words.push('\n');
        let surplus = words.len().saturating_sub(LAST_WORDS);
        let surplus = (surplus..words.len()).find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        words.drain(..surplus);
    }
}

fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(" listens on http://")?;
    rest.split('/').next()?.parse().ok()
}

/// Raises the descriptor limit of this process and its children to the maximum that the system allows. Returns the
/// number of connections that fit.
pub fn most_connections() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // If the limit cannot be raised, the current one applies.
    let _ = setrlimit(Resource::Nofile, raised);
    let most = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(SPARE)
}

/// The number of descriptors that a server needs besides its connections.
const SPARE: usize = 200;

#[cfg(test)]
mod tests {
    use super::listening;

    #[test]
    fn the_address_is_in_the_line_that_says_so() {
        let line = "creole: `creole` listens on http://127.0.0.1:4711/mcp";
        assert_eq!(listening(line), "127.0.0.1:4711".parse().ok());
        assert_eq!(listening("creole: hello"), None);
    }
}
