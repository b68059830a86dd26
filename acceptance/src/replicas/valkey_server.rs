//! A real Redis server in its own folder. What it acknowledges survives its end.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use creole_test_wait::blocking::within;
use tempfile::TempDir;

use crate::peers::{Missing, valkey};
use crate::process_under_test::ChildGuard;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running server. It ends when dropped.
pub struct ValkeyServer {
    process: Option<ChildGuard>,
    folder: TempDir,
    address: SocketAddr,
    options: Vec<String>,
}

/// How many ports this process has looked for: servers that start at the same time get different ones.
static GIVEN_PORTS: AtomicU16 = AtomicU16::new(0);

/// A port that no outgoing connection gets: the server is started again on it while others connect.
pub(super) fn free_port(address: Ipv4Addr) -> u16 {
    let offset = u16::try_from(std::process::id() * 7 % 10_000).unwrap_or_default();
    let first = 20_000 + offset + GIVEN_PORTS.fetch_add(1, Ordering::Relaxed);
    let mut ports = first..32_768;
    let is_free = |port: &u16| TcpListener::bind((address, *port)).is_ok();
    ports.find(is_free).expect("a free port")
}

impl ValkeyServer {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// When it cannot be installed or started.
    pub fn start() -> Result<Self, Missing> {
        Self::start_at(Ipv4Addr::LOCALHOST)
    }

    /// The same at another address of this machine, for clients in its network.
    ///
    /// # Errors
    /// When it cannot be installed or started.
    pub fn start_at(address: Ipv4Addr) -> Result<Self, Missing> {
        valkey::prepared()?;
        Ok(Self::with_options(address, vec![]))
    }

    /// Starts one that copies the data of another one.
    ///
    /// # Errors
    /// When it cannot be installed or started.
    pub fn start_replica(of: &Self) -> Result<Self, Missing> {
        valkey::prepared()?;
        let SocketAddr::V4(master) = of.address else { unreachable!("it has this address") };
        let (host, port) = (master.ip().to_string(), master.port().to_string());
        Ok(Self::with_options(*master.ip(), vec!["--replicaof".to_owned(), host, port]))
    }

    fn with_options(address: Ipv4Addr, options: Vec<String>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = (address, free_port(address)).into();
        let mut server = Self { process: None, folder, address, options };
        server.resume();
        server
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of its first database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("valkey://{}/0", self.address)
    }

    /// The folder of its files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it again on the same port.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn resume(&mut self) {
        let mut command = Command::new("redis-server");
        command
            .args(["--bind", &self.address.ip().to_string(), "--protected-mode", "no"])
            .args(["--port", &self.address.port().to_string(), "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always", "--dir"])
            .arg(self.folder.path())
            // A replica need not wait for others.
            .args(["--repl-diskless-sync-delay", "0"])
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = Some(ChildGuard::start(&mut command));
        let is_ready = || TcpStream::connect(self.address).is_ok() && self.run(&["PING"]) == "PONG";
        assert!(within(PATIENCE, is_ready).is_some(), "redis-server does not start");
    }

    /// Kills it.
    pub fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            // It may have ended already.
            _ = process.child().kill();
            _ = process.child().wait();
        }
    }

    /// Sends it a signal, such as `STOP`.
    ///
    /// # Panics
    /// When it does not run.
    #[track_caller]
    pub fn signal(&mut self, name: &str) {
        let process = self.process.as_mut().expect("it runs");
        let script = format!("kill -s {name} {}", process.child().id());
        let sent = Command::new("sh").args(["-c", &script]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "the signal {name} cannot be sent");
    }

    /// Runs a command and returns its output.
    ///
    /// # Panics
    /// When `redis-cli` cannot be started.
    #[track_caller]
    #[must_use]
    pub fn run(&self, words: &[&str]) -> String {
        run_at(self.address, words)
    }
}

/// Runs a command of the server at an address, and returns its output.
///
/// # Panics
/// When `redis-cli` cannot be started.
#[track_caller]
pub(super) fn run_at(address: SocketAddr, words: &[&str]) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-h", &address.ip().to_string(), "-p", &address.port().to_string()]);
    command.args(words).stdin(Stdio::null());
    let output = command.output().expect("redis-cli starts");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}
