//! Replicas in networks of their own, which fail alone.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::network::TestNetwork;
use super::{Link, ReplicaStore};
use crate::http::ListeningServer;
use crate::process_under_test::serve;

/// The port of every replica: each has an address of its own.
const PORT: u16 = 8080;

/// Replicas with the same configuration, each in a namespace of a [`TestNetwork`].
pub struct NetworkedReplicas {
    // Dropped first: a namespace lives as long as a process in it.
    replicas: Vec<Option<ListeningServer>>,
    folder: PathBuf,
    network: TestNetwork,
}

impl NetworkedReplicas {
    /// Starts a replica in each namespace. `configuration` is what they do, without the table of the state.
    ///
    /// # Panics
    /// When one of them does not start.
    #[track_caller]
    #[must_use]
    pub fn start(network: TestNetwork, store: &ReplicaStore, configuration: &str) -> Self {
        let folder = store.folder().to_owned();
        fs::write(file_in(&folder), format!("{configuration}\n{}", store.table()))
            .expect("a configuration");
        let replicas = (0..network.replicas()).map(|_| None).collect();
        let mut set = Self { replicas, folder, network };
        (0..set.network.replicas()).for_each(|replica| set.restart(replica));
        set
    }

    /// Starts a replica again, after it has ended.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn restart(&mut self, replica: u8) {
        let data = self.folder.join(format!("data-{replica}"));
        fs::create_dir_all(&data).expect("a data directory");
        let (address, file) = (self.address(replica).to_string(), file_in(&self.folder));
        let command = serve(&data, &["--http", &address, &file.display().to_string()]);
        let server = ListeningServer::other(self.network.enter(replica, &command));
        self.replicas[usize::from(replica)] = Some(server.expect("a replica"));
    }

    /// Kills a replica.
    pub fn kill(&mut self, replica: u8) {
        drop(self.take(replica));
    }

    /// Ends a replica as an operator does, and waits for it.
    ///
    /// # Panics
    /// When it does not end properly.
    #[track_caller]
    pub fn stop(&mut self, replica: u8) {
        let mut server = self.take(replica);
        server.stop().unwrap_or_else(|problem| panic!("{problem}:\n{}", server.log()));
    }

    /// Sends a signal to a replica, such as `STOP`.
    ///
    /// # Panics
    /// When it does not run.
    #[track_caller]
    pub fn signal(&mut self, replica: u8, name: &str) {
        let server = self.replicas[usize::from(replica)].as_mut();
        server.expect("the replica runs").signal(name);
    }

    /// Cuts a link of a replica.
    #[track_caller]
    pub fn cut(&self, replica: u8, link: Link) {
        self.network.cut(replica, link);
    }

    /// Repairs a link that was cut.
    #[track_caller]
    pub fn repair(&self, replica: u8, link: Link) {
        self.network.repair(replica, link);
    }

    /// The address of a replica. A replica that was started again has the same one.
    #[must_use]
    pub fn address(&self, replica: u8) -> SocketAddr {
        (self.network.replica_address(replica), PORT).into()
    }

    /// The addresses of all replicas.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.network.replicas()).map(|replica| self.address(replica)).collect()
    }

    #[track_caller]
    fn take(&mut self, replica: u8) -> ListeningServer {
        self.replicas[usize::from(replica)].take().expect("the replica runs")
    }
}

fn file_in(folder: &Path) -> PathBuf {
    folder.join("replica.toml")
}
