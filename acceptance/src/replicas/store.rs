//! The stores that replicas share: an SQLite file, and real servers.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use super::ValkeyServer;
use crate::peers::if_installed;
use crate::peers::postgres::{PASSWORD, Postgres};

/// The key of all replicas in tests.
const SEAL_KEY: &str = "5ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea15ea1";

/// Where replicas store what they share.
pub struct ReplicaStore {
    folder: TempDir,
    address: Ipv4Addr,
    /// The server.
    pub server: StoreServer,
}

/// What runs a store.
pub enum StoreServer {
    /// No server: the store is a file.
    File,
    /// A Redis server.
    Valkey(ValkeyServer),
    /// A PostgreSQL server.
    Postgres(Postgres),
}

impl ReplicaStore {
    fn at(address: Ipv4Addr, server: StoreServer) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("seal"), SEAL_KEY).expect("a key");
        Self { folder, address, server }
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
            StoreServer::Postgres(_) => "postgres",
        }
    }

    /// The table of a configuration that selects it.
    #[must_use]
    pub fn table(&self) -> String {
        let address = match &self.server {
            StoreServer::File => "file = \"state.sqlite\"".to_owned(),
            StoreServer::Valkey(server) => format!("url = \"{}\"", server.url()),
            StoreServer::Postgres(server) => {
                format!("url = \"{}\"\npassword = \"{PASSWORD}\"", server.url())
            }
        };
        let insecure = if self.address.is_loopback() { "" } else { "insecure = true\n" };
        format!("[state]\n{address}\nkeys_file = \"seal\"\n{insecure}")
    }

    /// Stops the server without ending it: it answers nothing.
    pub fn pause(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.signal("STOP"),
            StoreServer::Postgres(server) => server.signal_all("STOP"),
        }
    }

    /// Lets a paused server go on.
    pub fn unpause(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.signal("CONT"),
            StoreServer::Postgres(server) => server.signal_all("CONT"),
        }
    }

    /// Kills the server.
    pub fn end(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.end(),
            StoreServer::Postgres(server) => server.end(),
        }
    }

    /// Starts the server again.
    pub fn resume(&mut self) {
        match &mut self.server {
            StoreServer::File => {}
            StoreServer::Valkey(server) => server.resume(),
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
