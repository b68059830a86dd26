//! A real PostgreSQL server in its own folder, running as an unprivileged user.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs};

use creole_test_wait::blocking::within;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use tempfile::TempDir;

use super::install::Missing;
use super::process;
use crate::canaries;
use crate::process_under_test::ChildGuard;

/// The time limit for starting a server and for all other commands.
const PATIENCE: Duration = Duration::from_secs(60);
/// The user of the server if the tests run as root, which it refuses.
pub(super) const NOBODY: u32 = 65_534;
/// The password of the user that the tests connect as.
pub const PASSWORD: &str = "correct-horse-battery";

/// A running server with the user `reader`, whose password is [`PASSWORD`], and the database `shop`.
pub struct Postgres {
    process: Option<ChildGuard>,
    folder: TempDir,
    programs: PathBuf,
    address: Ipv4Addr,
    port: u16,
}

impl Postgres {
    /// Creates a database cluster and starts a server on it.
    pub fn start() -> Result<Self, Missing> {
        Self::start_at(Ipv4Addr::LOCALHOST)
    }

    /// The same at another address of this machine, for clients in its network.
    pub fn start_at(address: Ipv4Addr) -> Result<Self, Missing> {
        let programs = programs()?;
        canaries::watch(PASSWORD);
        let folder = tempfile::tempdir().expect("a folder");
        if geteuid().is_root() {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).expect("another owner");
        }
        let mut postgres = Self { process: None, folder, programs, address, port: 0 };
        let data = postgres.data();
        let mut make = postgres.command("initdb");
        make.args(["--no-sync", "--no-locale", "--encoding=UTF8", "--username=owner"]);
        make.args(["--auth-local=trust", "--auth-host=scram-sha-256", "--pgdata"]).arg(data);
        ran(&mut make);
        if !address.is_loopback() {
            let rules = "local all all trust\nhost all all samenet scram-sha-256\n";
            fs::write(postgres.data().join("pg_hba.conf"), rules).expect("rules for connections");
        }
        postgres.resume();
        postgres.run("postgres", &format!("CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'"));
        postgres.run("postgres", "CREATE DATABASE shop OWNER reader");
        Ok(postgres)
    }

    /// Accepts only encrypted connections from now on, except on its socket, with this certificate and key in PEM form.
    #[track_caller]
    pub fn encrypt(&mut self, certificate: &str, key: &str) {
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        let files = [("server.crt", certificate), ("server.key", key), ("pg_hba.conf", rules)];
        for (name, text) in files {
            let path = self.data().join(name);
            fs::write(&path, text).expect("the folder of the server is ours");
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).expect("permissions");
            if geteuid().is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).expect("another owner");
            }
        }
        self.run("postgres", "ALTER SYSTEM SET ssl = on");
        self.end();
        self.resume();
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        (self.address, self.port).into()
    }

    /// The database URL of `reader`, without the password.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://reader@{}:{}/shop", self.address, self.port)
    }

    /// Runs SQL as the superuser. Returns the output without headings.
    #[track_caller]
    pub fn run(&self, database: &str, sql: &str) -> String {
        let mut psql = self.command("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "-v",
            "ON_ERROR_STOP=1",
        ]);
        psql.args(["--username=owner", "--dbname", database, "--command", sql]);
        psql.arg("--host").arg(self.folder.path()).arg(format!("--port={}", self.port));
        ran(&mut psql)
    }

    /// Sends a signal, such as `STOP`, to the server and to the processes of its connections.
    ///
    /// # Panics
    /// When it does not run.
    #[track_caller]
    pub fn signal_all(&mut self, name: &str) {
        let id = self.process.as_mut().expect("it runs").child().id();
        // The process of a connection may end meanwhile.
        let script = format!(
            "kill -s {name} {id} || exit 1; kill -s {name} $(cat /proc/{id}/task/{id}/children) 2>&-; true"
        );
        let sent = Command::new("sh").args(["-c", &script]).status();
        assert!(sent.is_ok_and(|sent| sent.success()), "the signal {name} cannot be sent");
    }

    /// Ends the server immediately, with all connections.
    pub fn end(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        if let Some(pid) = Pid::from_raw(process.child().id().cast_signed()) {
            // It may have ended already.
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = process.child().wait();
    }

    /// Starts the server again on the same port.
    #[track_caller]
    pub fn resume(&mut self) {
        // Another process may have taken the port meanwhile.
        for _ in 0..10 {
            if self.port == 0 {
                let free = TcpListener::bind((self.address, 0))
                    .and_then(|tcp_listener| tcp_listener.local_addr());
                self.port = free.expect("a port").port();
            }
            let mut server = self.command("postgres");
            server.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
            server.arg("-k").arg(self.folder.path());
            let address = format!("listen_addresses={}", self.address);
            for setting in ["fsync=off", "shared_buffers=16MB", &address] {
                server.args(["-c", setting]);
            }
            self.process = Some(ChildGuard::start(&mut server));
            if self.is_ready() {
                return;
            }
            self.end();
            self.port = 0;
        }
        panic!("no PostgreSQL server starts");
    }

    fn is_ready(&mut self) -> bool {
        let settled = within(PATIENCE, || {
            let mut asked = self.command("pg_isready");
            asked.arg(format!("--host={}", self.address)).arg(format!("--port={}", self.port));
            if asked.status().is_ok_and(|status| status.success()) {
                return Some(true);
            }
            let process = self.process.as_mut().map(ChildGuard::child);
            let has_ended = process.is_none_or(|it| !matches!(it.try_wait(), Ok(None)));
            has_ended.then_some(false)
        });
        settled.unwrap_or(false)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// One of the server's programs, as its user and with an empty environment.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C").current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.end();
    }
}

#[track_caller]
fn ran(command: &mut Command) -> String {
    let output = process::output(command, Instant::now() + PATIENCE).expect("it ends");
    assert!(output.success, "{command:?} failed:\n{}{}", output.stdout, output.stderr);
    output.stdout.trim_end().to_owned()
}

/// The folder of the server's programs, which Debian keeps off the path. Installs them if possible.
pub fn programs() -> Result<PathBuf, Missing> {
    let found = || {
        let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let packaged = packaged.map(|version| version.path().join("bin"));
        let path = env::var_os("PATH").unwrap_or_default();
        let all: Vec<PathBuf> = packaged.chain(env::split_paths(&path)).collect();
        let has_all = |folder: &Path| {
            ["initdb", "pg_isready", "postgres", "psql"]
                .iter()
                .all(|text| folder.join(text).exists())
        };
        all.into_iter().find(|folder| has_all(folder))
    };
    if let Some(folder) = found() {
        return Ok(folder);
    }
    let remedy = "install PostgreSQL 13 or newer (Debian: postgresql)";
    super::debian::install_package("postgresql", remedy)?;
    found().ok_or_else(|| Missing(format!("apt-get installed no PostgreSQL; {remedy}")))
}
