//! A real PgBouncer in front of a PostgreSQL server. Each transaction of a client may run on another connection to the
//! server.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole_test_wait::blocking::within;
use rustix::process::geteuid;
use tempfile::TempDir;

use super::debian::require_programs;
use super::install::Missing;
use super::postgres::{NOBODY, PASSWORD, Postgres};
use crate::process_under_test::ChildGuard;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running pooler. It ends when dropped.
pub struct PgBouncer {
    _process: ChildGuard,
    _folder: TempDir,
    address: SocketAddr,
}

impl PgBouncer {
    /// Installs it, if it is missing, and starts it in transaction mode.
    ///
    /// # Errors
    /// When it cannot be installed.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    pub fn start(server: &Postgres) -> Result<Self, Missing> {
        let remedy = "install PgBouncer (Debian: pgbouncer)";
        require_programs(&["pgbouncer"], "pgbouncer", remedy)?;
        let folder = tempfile::tempdir().expect("a folder");
        let settings = folder.path().join("pgbouncer.ini");
        fs::write(folder.path().join("users"), format!("\"reader\" \"{PASSWORD}\"\n"))
            .expect("a user");
        if geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("another owner");
        }
        // Another process may take a free port before it does.
        for _ in 0..10 {
            let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
            let address = free.expect("a port");
            fs::write(&settings, configuration(server.address(), address)).expect("its settings");
            let mut command = Command::new("pgbouncer");
            command.arg(&settings).current_dir(folder.path());
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            if geteuid().is_root() {
                // It refuses to run as root.
                command.uid(NOBODY).gid(NOBODY);
            }
            let mut process = ChildGuard::start(&mut command);
            if is_ready(&mut process, address) {
                return Ok(Self { _process: process, _folder: folder, address });
            }
        }
        panic!("no PgBouncer starts");
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The connections to the server are used in turns, so that successive transactions of a client meet different ones.
fn configuration(server: SocketAddr, address: SocketAddr) -> String {
    format!(
        "[databases]\n\
         shop = host={} port={} dbname=shop\n\
         [pgbouncer]\n\
         listen_addr = {}\n\
         listen_port = {}\n\
         unix_socket_dir =\n\
         auth_type = scram-sha-256\n\
         auth_file = users\n\
         pool_mode = transaction\n\
         default_pool_size = 4\n\
         min_pool_size = 4\n\
         server_round_robin = 1\n",
        server.ip(),
        server.port(),
        address.ip(),
        address.port()
    )
}

fn is_ready(process: &mut ChildGuard, address: SocketAddr) -> bool {
    let settled = within(PATIENCE, || {
        if TcpStream::connect(address).is_ok() {
            return Some(true);
        }
        let has_ended = !matches!(process.child().try_wait(), Ok(None));
        has_ended.then_some(false)
    });
    settled.unwrap_or(false)
}
