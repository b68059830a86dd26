//! The stores that replicas share: an SQLite file, and real servers.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use super::{ValkeyFailover, ValkeyServer};
use crate::peers::if_installed;
use crate::peers::postgres::{PASSWORD, Postgres};

/// The key of all replicas in tests.
const SEAL_KEY: &str = "5ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea1";

/// Where replicas store what they share.
pub struct ReplicaStore {
    folder: TempDir,
    address: Ipv4Addr,
    /// What the replicas connect to instead of the server.
    proxy: Option<SocketAddr>,
    /// The server.
    pub server: StoreServer,
}

/// What runs a store.
pub enum StoreServer {
    /// No server: the store is a file.
    File,
    /// A Redis server.
    Valkey(ValkeyServer),
    /// Several Redis servers, of which sentinels choose the master.
    Failover(ValkeyFailover),
    /// A PostgreSQL server.
    Postgres(Postgres),
}

impl ReplicaStore {
    fn at(address: Ipv4Addr, server: StoreServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("seal"), SEAL_KEY).expect("a key");
        Self { folder, address, proxy: None, server }
    }

    /// A store in a file.
    #[must_use]
    pub fn file() -> Self {
        Self::at(Ipv4Addr::LOCALHOST, StoreServer::File)
    }

    /// A Redis server. `None` if it cannot be installed; with `CI=true` that is a failure.
    #[track_caller]
    #[must_use]
    pub fn valkey() -> Option<Self> {
        Self::valkey_at(Ipv4Addr::LOCALHOST)
    }

    /// The same at another address of this machine, for replicas in its network.
    #[track_caller]
    #[must_use]
    pub fn valkey_at(address: Ipv4Addr) -> Option<Self> {
        let server = if_installed("redis-server", ValkeyServer::start_at(address))?;
        Some(Self::at(address, StoreServer::Valkey(server)))
    }

    /// Redis servers with a sentinel. `None` if they cannot be installed; with `CI=true` that is a failure.
    #[track_caller]
    #[must_use]
    pub fn failover() -> Option<Self> {
        let servers = if_installed("redis-server", ValkeyFailover::start())?;
        Some(Self::at(Ipv4Addr::LOCALHOST, StoreServer::Failover(servers)))
    }

    /// A PostgreSQL server. `None` if it cannot be installed; with `CI=true` that is a failure.
    #[track_caller]
    #[must_use]
    pub fn postgres() -> Option<Self> {
        Self::postgres_at(Ipv4Addr::LOCALHOST)
    }

    /// The same at another address of this machine, for replicas in its network.
    #[track_caller]
    #[must_use]
    pub fn postgres_at(address: Ipv4Addr) -> Option<Self> {
        let server = if_installed("PostgreSQL", Postgres::start_at(address))?;
        Some(Self::at(address, StoreServer::Postgres(server)))
    }

    /// The same store, which replicas reach at another address.
    #[must_use]
    pub fn through(self, proxy: SocketAddr) -> Self {
        Self { proxy: Some(proxy), ..self }
    }

    /// The address of the server.
    ///
    /// # Panics
    /// When the store is a file.
    #[must_use]
    pub fn server_address(&self) -> SocketAddr {
        match &self.server {
            StoreServer::File => panic!("a file has no address"),
            StoreServer::Valkey(server) => server.address(),
            StoreServer::Failover(servers) => servers.master().address(),
            StoreServer::Postgres(server) => server.address(),
        }
    }

    /// A folder for the files of the replicas.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its name in the output of tests.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.server {
            StoreServer::File => "file",
            StoreServer::Valkey(_) => "valkey",
            StoreServer::Failover(_) => "failover",
            StoreServer::Postgres(_) => "postgres",
        }
    }

    /// The table of a configuration that selects it.
    #[must_use]
    pub fn table(&self) -> String {
        let mut address = match &self.server {
            StoreServer::File => "file = \"state.sqlite\"".to_owned(),
            StoreServer::Valkey(server) => format!("url = \"{}\"", server.url()),
            StoreServer::Failover(servers) => servers.keys(),
            StoreServer::Postgres(server) => {
                format!("url = \"{}\"\npassword = \"{PASSWORD}\"", server.url())
            }
        };
        if let Some(proxy) = self.proxy {
            address = address.replace(&self.server_address().to_string(), &proxy.to_string());
        }
        let insecure = if self.address.is_loopback() { "" } else { "insecure = true\n" };
        format!("[state]\n{address}\nkeys_file = \"seal\"\n{insecure}")
    }

    /// Stops the server without ending it: it answers nothing.
    pub fn pause(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.signal("STOP"),
            StoreServer::Failover(servers) => servers.master_mut().signal("STOP"),
            StoreServer::Postgres(server) => server.signal_all("STOP"),
        }
    }

    /// Lets a paused server go on.
    pub fn unpause(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.signal("CONT"),
            StoreServer::Failover(servers) => servers.master_mut().signal("CONT"),
            StoreServer::Postgres(server) => server.signal_all("CONT"),
        }
    }

    /// Kills the server.
    pub fn end(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.end(),
            StoreServer::Failover(servers) => servers.master_mut().end(),
            StoreServer::Postgres(server) => server.end(),
        }
    }

    /// Starts the server again.
    pub fn resume(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.resume(),
            StoreServer::Failover(servers) => servers.master_mut().resume(),
            StoreServer::Postgres(server) => server.resume(),
        }
    }
}

/// Runs a test on each store, all at the same time.
///
/// # Panics
/// When it fails on one of them.
#[track_caller]
#[expect(clippy::print_stderr, reason = "the output of a failed test names the store")]
pub fn each_store(test: impl Fn(ReplicaStore) + Sync) {
    let run = |store: Option<ReplicaStore>| {
        let Some(store) = store else { return };
        eprintln!("on the store {}", store.name());
        test(store);
    };
    thread::scope(|scope| {
        scope.spawn(|| run(Some(ReplicaStore::file())));
        scope.spawn(|| run(ReplicaStore::valkey()));
        scope.spawn(|| run(ReplicaStore::postgres()));
    });
}
