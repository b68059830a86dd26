//! Replicas of one server on one store, as an operator runs them on several machines.

mod load_balancer;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod networked;
mod recording_server;
mod slow_proxy;
mod store;
mod tenants;
mod valkey_failover;
mod valkey_server;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use load_balancer::{LoadBalancer, name_of, served_by};
#[cfg(target_os = "linux")]
pub use network::{Link, TestNetwork};
#[cfg(target_os = "linux")]
pub use networked::NetworkedReplicas;
pub use recording_server::{Executions, RecordingServer};
pub use slow_proxy::SlowProxy;
pub use store::{ReplicaStore, StoreServer, each_store};
pub use tenants::{tenant_key, tenants};
pub use valkey_failover::ValkeyFailover;
pub use valkey_server::ValkeyServer;

use crate::http::ListeningServer;

/// Replicas with the same configuration. Requests go to them in turns, as behind a load balancer without affinity.
pub struct ReplicaSet {
    file: String,
    replicas: Vec<ListeningServer>,
    turn: AtomicUsize,
}

impl ReplicaSet {
    /// Starts this many replicas on a store. `configuration` is what they do, without the table of the state.
    ///
    /// # Panics
    /// When one of them does not start.
    #[track_caller]
    #[must_use]
    pub fn start(store: &ReplicaStore, configuration: &str, count: usize) -> Self {
        let file = store.folder().join("replica.toml");
        fs::write(&file, format!("{configuration}\n{}", store.table())).expect("a configuration");
        let file = file.display().to_string();
        let mut set = Self { file, replicas: Vec::new(), turn: AtomicUsize::new(0) };
        (0..count).for_each(|_| set.add());
        set
    }

    /// Starts one more replica.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn add(&mut self) {
        self.add_changed(|_| {});
    }

    /// Starts one more replica, with a change of its command.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn add_changed(&mut self, change: impl FnOnce(&mut Command)) {
        let replica = ListeningServer::start_changed(&[&self.file], change).expect("a replica");
        self.replicas.push(replica);
    }

    /// Takes a replica out of the set, by its age.
    ///
    /// # Panics
    /// When there is no such replica.
    #[track_caller]
    pub fn remove(&mut self, index: usize) -> ListeningServer {
        self.replicas.remove(index)
    }

    /// Takes the oldest replica out of the set.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn remove_oldest(&mut self) -> ListeningServer {
        self.replicas.remove(0)
    }

    /// A replica, by its age.
    #[must_use]
    pub fn replica(&self, index: usize) -> &ListeningServer {
        &self.replicas[index]
    }

    /// The file of their configuration.
    #[must_use]
    pub fn configuration(&self) -> &Path {
        Path::new(&self.file)
    }

    /// The address of a replica, by its age.
    #[must_use]
    pub fn address(&self, index: usize) -> SocketAddr {
        self.replicas[index].address()
    }

    /// All addresses, the oldest replica first.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.replicas.iter().map(ListeningServer::address).collect()
    }

    /// The address for the next request.
    #[must_use]
    pub fn next_address(&self) -> SocketAddr {
        self.address(self.turn.fetch_add(1, Ordering::Relaxed) % self.replicas.len())
    }
}
