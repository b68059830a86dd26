//! A Redis master with two replicas, and a sentinel that promotes one of them when the master is gone.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use creole_test_wait::blocking::eventually;
use tempfile::TempDir;

use super::ValkeyServer;
use super::valkey_server::{free_port, run_at};
use crate::peers::Missing;
use crate::process_under_test::ChildGuard;

/// How many servers copy the master: one is left to confirm writes when another one is promoted.
const COPIES: usize = 2;

/// The servers. They end when dropped.
pub struct ValkeyFailover {
    // Dropped first, so that it promotes nothing at the end.
    _sentinel: ChildGuard,
    _folder: TempDir,
    sentinel_address: SocketAddr,
    /// The first one is the master, as far as this knows.
    servers: Vec<ValkeyServer>,
}

impl ValkeyFailover {
    /// Starts them, and waits until they are connected.
    ///
    /// # Errors
    /// When they cannot be installed or started.
    pub fn start() -> Result<Self, Missing> {
        let master = ValkeyServer::start()?;
        let mut servers = vec![master];
        for _ in 0..COPIES {
            servers.push(ValkeyServer::start_replica(&servers[0])?);
        }
        eventually("the copies are connected", || {
            servers[0].run(&["INFO", "replication"]).matches("state=online").count() == COPIES
        });
        let (folder, sentinel_address) = (tempfile::tempdir().expect("a folder"), free_address());
        let sentinel = start_sentinel(&folder, sentinel_address, servers[0].address());
        let started = Self { _sentinel: sentinel, _folder: folder, sentinel_address, servers };
        let copies: Vec<_> =
            started.servers[1..].iter().map(|it| it.address().port().to_string()).collect();
        eventually("the sentinel knows the copies", || {
            let known = started.ask_sentinel(&["SENTINEL", "REPLICAS", MASTER]);
            copies.iter().all(|port| known.contains(port))
        });
        Ok(started)
    }

    /// The keys of a table that selects them.
    #[must_use]
    pub fn keys(&self) -> String {
        let sentinel = self.sentinel_address;
        format!(
            "url = \"valkey://localhost\"\nwait_replicas = 1\n\
             sentinel = {{ nodes = [\"{sentinel}\"], master = \"{MASTER}\" }}"
        )
    }

    /// The master.
    #[must_use]
    pub fn master(&self) -> &ValkeyServer {
        &self.servers[0]
    }

    /// The master.
    pub fn master_mut(&mut self) -> &mut ValkeyServer {
        &mut self.servers[0]
    }

    /// Kills the master.
    pub fn kill_master(&mut self) {
        self.servers.remove(0).end();
    }

    /// Waits until a copy is promoted after the master was killed, and the other one follows it.
    ///
    /// # Panics
    /// When that does not happen.
    #[track_caller]
    pub fn wait_for_promotion(&mut self) {
        let is_served = |server: &ValkeyServer| {
            let state = server.run(&["INFO", "replication"]);
            state.contains("role:master") && state.contains("state=online")
        };
        let promoted = eventually("a copy is promoted and the other one follows it", || {
            self.servers.iter().position(is_served)
        });
        self.servers.swap(0, promoted);
    }

    fn ask_sentinel(&self, words: &[&str]) -> String {
        run_at(self.sentinel_address, words)
    }
}

/// The name of the master.
const MASTER: &str = "main";

fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST)).into()
}

fn start_sentinel(folder: &TempDir, address: SocketAddr, master: SocketAddr) -> ChildGuard {
    let file = folder.path().join("sentinel.conf");
    let settings = format!(
        "port {}\nbind {}\nsentinel monitor {MASTER} {} {} 1\n\
         sentinel down-after-milliseconds {MASTER} 1000\nsentinel failover-timeout {MASTER} 10000\n\
         sentinel parallel-syncs {MASTER} 2\n",
        address.port(),
        address.ip(),
        master.ip(),
        master.port()
    );
    fs::write(&file, settings).expect("the settings of the sentinel");
    let mut command = Command::new("redis-server");
    command.arg(&file).arg("--sentinel").current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    ChildGuard::start(&mut command)
}
