//! The real binary, listening on a loopback port that the system chose.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use creole_test_wait::blocking::eventually;
use tempfile::TempDir;

use crate::canaries;
use crate::process_under_test::resource_usage::ResourceUsage;
use crate::process_under_test::{ChildGuard, serve};
use crate::stage::stdio::repository;

/// How long the server may take until it accepts connections.
const BEGINNING: Duration = Duration::from_secs(60);

/// A running `creole serve --http`, or another server; it is killed when dropped.
pub struct ListeningServer {
    process: ChildGuard,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
    _data: TempDir,
}

impl ListeningServer {
    /// Starts `creole serve` with these arguments and an empty data directory, in the repository root, and waits until
    /// it reports its address.
    pub fn start(words: &[&str]) -> Result<Self, String> {
        Self::start_changed(words, |_| {})
    }

    /// The same with a change of its command, such as a variable of its environment.
    pub fn start_changed(
        words: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Result<Self, String> {
        let data = tempfile::tempdir().map_err(|error| error.to_string())?;
        // First, because the arguments may end with a command.
        let words = [&["--http", "127.0.0.1:0"], words].concat();
        let mut command = serve(data.path(), &words);
        command.current_dir(repository());
        change(&mut command);
        let (process, address, log) = begin(command)?;
        Ok(Self { process, address, log, _data: data })
    }

    /// Starts any other server that reports its address in the same form.
    pub fn other(command: Command) -> Result<Self, String> {
        let data = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (process, address, log) = begin(command)?;
        Ok(Self { process, address, log, _data: data })
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its endpoint.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, super::client::PATH)
    }

    /// Its current resource usage.
    #[must_use]
    pub fn weight(&self) -> ResourceUsage {
        self.process.weight()
    }

    /// Its open sockets.
    #[must_use]
    #[track_caller]
    pub fn sockets(&self) -> BTreeSet<PathBuf> {
        self.process.sockets()
    }

    /// Its whole stderr output.
    #[must_use]
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until its stderr contains this text.
    ///
    /// # Panics
    /// When it does not appear in time.
    #[track_caller]
    pub fn until_said(&self, description: &str) {
        let missing = || format!("stderr never contained `{description}`:\n{}", self.log());
        eventually(missing, || self.log().contains(description));
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&mut self, name: &str) {
        let script = format!("kill -s {name} {}", self.process.child().id());
        let sent = Command::new("sh").args(["-c", &script]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "the signal {name} cannot be sent");
    }

    /// Its process id.
    pub fn id(&mut self) -> u32 {
        self.process.child().id()
    }

    /// Waits until it has ended. Returns its exit code, or `None` if a signal ended it.
    #[track_caller]
    pub fn wait(&mut self) -> Option<i32> {
        self.process.wait()
    }

    /// Ends it, and waits for it. The error says how it failed.
    pub fn stop(&mut self) -> Result<(), String> {
        let script = format!("kill -s TERM {}", self.process.child().id());
        let result = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
        result.map_err(|error| error.to_string())?;
        match self.process.wait() {
            Some(0) => Ok(()),
            Some(code) => Err(format!("exit code {code}")),
            None => Err("it ended by the signal instead of by itself".to_owned()),
        }
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        canaries::assert_absent("the log of a server", &self.log());
    }
}

type StartedServer = (ChildGuard, SocketAddr, Arc<Mutex<String>>);

/// Starts the command, collects its log, and reads its address from it.
fn begin(mut command: Command) -> Result<StartedServer, String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut process = ChildGuard::start(&mut command);
    let stderr = process.child().stderr.take().ok_or("it has no stderr")?;
    let log = Arc::new(Mutex::new(String::new()));
    let (found, listens) = channel();
    let kept = Arc::clone(&log);
    thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Some(address) = address_in(&line) {
                // Only the first such line is awaited.
                let _ = found.send(address);
            }
            let mut log = kept.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_str(&line);
            log.push('\n');
        }
    });
    let reason = match listens.recv_timeout(BEGINNING) {
        Ok(address) => return Ok((process, address, log)),
        Err(RecvTimeoutError::Timeout) => "it does not say where it listens",
        Err(RecvTimeoutError::Disconnected) => "it ended before it listened",
    };
    let text = log.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Err(format!("{command:?}: {reason}; its stderr:\n{text}"))
}

/// The address in the line in which the server reports it.
fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, url) = line.split_once(" listens on http")?;
    let url = url.strip_prefix('s').unwrap_or(url).strip_prefix("://")?;
    url.split('/').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_from_the_log_line() {
        let line = "creole: `everything` listens on http://127.0.0.1:8080/mcp";
        assert_eq!(address_in(line), "127.0.0.1:8080".parse().ok());
        let encrypted = line.replace("http:", "https:");
        assert_eq!(address_in(&encrypted), "127.0.0.1:8080".parse().ok());
        assert_eq!(address_in("listens on nothing"), None);
    }
}
