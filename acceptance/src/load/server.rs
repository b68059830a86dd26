//! Runs `creole serve --http` as a process.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{ChildStderr, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, thread};

use tempfile::TempDir;

use crate::process_under_test::resource_usage::ResourceUsage;
use crate::process_under_test::{ChildGuard, PATIENCE, serve};

/// The number of log lines that are kept for a failure report.
const LAST_WORDS: usize = 50;

/// The HTTP limits that a test sets. The others keep their defaults.
#[derive(Clone, Copy, Debug, Default)]
pub struct HttpLimitSettings {
    /// How long the headers of a request may take.
    pub header_timeout_seconds: Option<u64>,
    /// How long a client may leave written data unread.
    pub write_timeout_seconds: Option<u64>,
    /// The maximum number of connections.
    pub connections: Option<u64>,
    /// The maximum number of sessions.
    pub sessions: Option<u64>,
    /// How long a session may be unused.
    pub session_timeout_seconds: Option<u64>,
}

impl HttpLimitSettings {
    /// The table of the configuration that sets them.
    fn table(self) -> String {
        let settings = [
            ("header_timeout_seconds", self.header_timeout_seconds),
            ("write_timeout_seconds", self.write_timeout_seconds),
            ("max_connections", self.connections),
            ("max_sessions", self.sessions),
            ("session_timeout_seconds", self.session_timeout_seconds),
        ];
        let mut table = String::from("[http.limits]\n");
        for (key, value) in settings {
            if let Some(value) = value {
                // Writing to a string cannot fail.
                let _ = writeln!(table, "{key} = {value}");
            }
        }
        table
    }
}

/// A running server; it is killed when dropped.
pub struct HttpServer {
    process: ChildGuard,
    address: SocketAddr,
    log: Arc<Mutex<VecDeque<String>>>,
    _data: TempDir,
}

impl HttpServer {
    /// Starts a server on a free loopback port, with the packs `echo` and `everything`.
    ///
    /// # Panics
    ///
    /// When it does not report its address within a minute.
    #[must_use]
    #[track_caller]
    pub fn start(limits: HttpLimitSettings) -> Self {
        let data = tempfile::tempdir().expect("a data directory");
        let file = data.path().join("creole.toml");
        let server = "[server]\nname = \"load\"\npacks = [\"echo\", \"everything\"]\n";
        let calls = "[server.limits]\ncalls_in_flight = 100000\n";
        fs::write(&file, format!("{server}\n{calls}\n{}", limits.table())).expect("a file");

        let mut command = serve(data.path(), &["creole.toml", "--http", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = ChildGuard::start(&mut command);
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, addresses) = channel();
        let stderr = process.child().stderr.take().expect("its stderr");
        let kept = Arc::clone(&log);
        thread::spawn(move || read_log(stderr, &kept, &sender));
        let address = address(&addresses, &log);
        Self { process, address, log, _data: data }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its current resource usage.
    #[must_use]
    #[track_caller]
    pub fn weight(&self) -> ResourceUsage {
        self.process.weight()
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log(&self) -> String {
        text(&self.log)
    }
}

#[track_caller]
fn address(addresses: &Receiver<SocketAddr>, log: &Mutex<VecDeque<String>>) -> SocketAddr {
    addresses.recv_timeout(PATIENCE).unwrap_or_else(|error| {
        panic!("the server printed no address ({error}); its log:\n{}", text(log))
    })
}

fn text(log: &Mutex<VecDeque<String>>) -> String {
    let lines = log.lock().unwrap_or_else(PoisonError::into_inner);
    lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
}

/// Reads to the end, so that the server never blocks on the test, and keeps the last lines.
fn read_log(stderr: ChildStderr, log: &Mutex<VecDeque<String>>, sender: &Sender<SocketAddr>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(address) = listening(&line) {
            // A test that no longer waits has reported why.
            let _ = sender.send(address);
        }
        let mut kept = log.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == LAST_WORDS {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

/// The address in ``creole: `NAME` listens on http://127.0.0.1:8080/mcp``.
fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(" listens on http://")?;
    rest.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{HttpLimitSettings, listening};

    #[test]
    fn the_address_is_in_the_line_that_says_so() {
        let line = "creole: `load` listens on http://127.0.0.1:4711/mcp";
        assert_eq!(listening(line), Some("127.0.0.1:4711".parse().unwrap()));
        assert_eq!(listening("creole: something else"), None);
    }

    #[test]
    fn only_configured_limits_are_set() {
        let limits = HttpLimitSettings { sessions: Some(10), ..HttpLimitSettings::default() };
        assert_eq!(limits.table(), "[http.limits]\nmax_sessions = 10\n");
    }
}
