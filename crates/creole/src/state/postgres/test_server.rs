//! A real PostgreSQL server for tests. It has its own folder with a Unix socket, and no port before it is encrypted.

use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{env, fs};

use creole_oauth::secret::SecretText;
use creole_test_wait::blocking::{eventually, within};
use rustix::process::{Pid, Signal, geteuid, kill_process, test_kill_process};

use super::super::StateLimits;
use super::{PostgresSettings, PostgresState};

/// The user of the server when the tests run as root, which it refuses.
const NOBODY: u32 = 65_534;
/// How long the server may take to end.
const END_TIMEOUT: Duration = Duration::from_secs(10);
/// The password of the user that the states connect as.
const PASSWORD: &str = "correct-horse-battery";

/// Ends the server and removes its folder when its input ends: also when the test process is killed.
const SUPERVISOR: &str = r#"
    folder=$1; shift
    "$@" & server=$!
    cat > /dev/null
    kill -QUIT "$server" 2> /dev/null
    kill -CONT "$server" 2> /dev/null
    wait "$server"
    rm -rf "$folder"
"#;

/// A running server with the database `state` and its owner `creole`, who is no superuser.
#[derive(Debug)]
pub(in super::super) struct TestServer {
    programs: PathBuf,
    folder: PathBuf,
    /// Part of the name of its socket, and its port once it is encrypted.
    port: u16,
    is_encrypted: bool,
    supervisors: Vec<Child>,
}

/// The server of this test process. None when PostgreSQL is not installed.
pub(super) fn shared() -> Option<&'static TestServer> {
    static SERVER: OnceLock<Option<TestServer>> = OnceLock::new();
    SERVER.get_or_init(TestServer::start).as_ref()
}

/// A state in a cluster of its own. None when PostgreSQL is not installed.
pub(in super::super) async fn open_in_new_cluster(limits: StateLimits) -> Option<PostgresState> {
    static CLUSTERS: AtomicUsize = AtomicUsize::new(0);
    let name = format!("property-{}", CLUSTERS.fetch_add(1, Ordering::Relaxed));
    // Long, because a property is about results and not about time.
    let settings = shared()?.settings("state", &name).timeout(Duration::from_secs(30));
    Some(PostgresState::open(&settings, limits).await.unwrap())
}

impl TestServer {
    /// Starts a server. None when PostgreSQL is not installed: this is reported, and with `CI=true` the test fails.
    pub(super) fn start() -> Option<Self> {
        let Some(programs) = find_programs() else {
            let is_required = env::var("CI").as_deref() == Ok("true");
            assert!(!is_required, "PostgreSQL is not installed (Debian: postgresql)");
            eprintln!("NOT TESTED with PostgreSQL: it is not installed (Debian: postgresql)");
            return None;
        };
        let folder = tempfile::tempdir().unwrap().keep();
        if geteuid().is_root() {
            chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut server =
            Self { programs, folder, port: 5432, is_encrypted: false, supervisors: vec![] };
        let mut make = server.command("initdb");
        make.args(["--no-sync", "--no-locale", "--encoding=UTF8", "--username=owner", "--pgdata"]);
        run(make.arg(server.data()));
        fs::write(
            server.data().join("pg_hba.conf"),
            "local all owner trust\nlocal all all scram-sha-256\n",
        )
        .unwrap();
        server.resume();
        server.run_sql("postgres", &format!("CREATE ROLE creole LOGIN PASSWORD '{PASSWORD}'"));
        server.run_sql("postgres", "CREATE DATABASE state OWNER creole");
        Some(server)
    }

    /// Creates an empty database, and returns its name.
    pub(super) fn create_database(&self) -> String {
        static DATABASES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("database{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.run_sql("postgres", &format!("CREATE DATABASE {name} OWNER creole"));
        name
    }

    /// The settings of a cluster in a database.
    pub(super) fn settings(&self, database: &str, cluster: &str) -> PostgresSettings {
        let settings = PostgresSettings::new(self.address(database));
        settings.password(SecretText::new(PASSWORD)).name(cluster)
    }

    /// The address of a database without the password.
    pub(super) fn address(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&user=creole", self.folder.display())
    }

    /// Accepts encrypted connections on a port from now on, with this certificate and key in PEM form. Returns the
    /// address of a database with the port.
    pub(super) fn encrypt(&mut self, certificate: &str, key: &str) -> String {
        let rules = "local all owner trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
        let files = [("server.crt", certificate), ("server.key", key), ("pg_hba.conf", rules)];
        for (name, text) in files {
            let path = self.data().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
            if geteuid().is_root() {
                chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        self.end();
        self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        self.is_encrypted = true;
        self.resume();
        format!("postgres://creole@127.0.0.1:{}/state?sslmode=require", self.port)
    }

    /// The settings for an address of [`Self::encrypt`].
    pub(super) fn encrypted_settings(address: &str) -> PostgresSettings {
        PostgresSettings::new(address).password(SecretText::new(PASSWORD))
    }

    /// Runs SQL as the superuser. Returns the output without headings.
    #[track_caller]
    pub(super) fn run_sql(&self, database: &str, sql: &str) -> String {
        let mut psql = self.command("psql");
        psql.args([
            "--no-psqlrc",
            "--quiet",
            "--tuples-only",
            "--no-align",
            "-v",
            "ON_ERROR_STOP=1",
        ]);
        psql.args(["--username=owner", "--dbname", database, "--command", sql, "--host"]);
        run(psql.arg(&self.folder).arg("--port").arg(self.port.to_string()))
    }

    /// Ends the server immediately, with all connections, as a crash does.
    pub(super) fn end(&self) {
        let pid = self.process_id();
        kill_process(pid, Signal::QUIT).unwrap();
        let has_ended = || test_kill_process(pid).is_err();
        if within(END_TIMEOUT, has_ended).is_none() {
            // Version 15 does much of its end in a signal handler, and may hang there.
            self.signal(Signal::KILL);
            eventually("the server ends", has_ended);
        }
    }

    /// Starts the server again.
    pub(super) fn resume(&mut self) {
        let mut supervisor = self.command("/bin/sh");
        supervisor.args(["-c", SUPERVISOR, "sh"]).arg(&self.folder);
        supervisor.arg(self.programs.join("postgres")).arg("-D").arg(self.data());
        supervisor.arg("-k").arg(&self.folder).arg("-p").arg(self.port.to_string());
        let network: &[&str] = match self.is_encrypted {
            true => &["listen_addresses=127.0.0.1", "ssl=on"],
            false => &["listen_addresses="],
        };
        let settings = ["fsync=off", "shared_buffers=16MB", "log_min_messages=panic"];
        for setting in settings.iter().chain(network) {
            supervisor.args(["-c", setting]);
        }
        // A signal to the group of the test process does not reach it.
        supervisor.stdin(Stdio::piped()).process_group(0);
        self.supervisors.push(supervisor.spawn().unwrap());
        eventually("the server is ready", || {
            let mut question = self.command("pg_isready");
            question.arg("--host").arg(&self.folder).arg("--port").arg(self.port.to_string());
            question.status().unwrap().success()
        });
    }

    /// Sends a signal to all processes of the server.
    pub(super) fn signal(&self, signal: Signal) {
        let server = self.process_id();
        for process in children(server).into_iter().chain([server]) {
            // A child may have ended meanwhile.
            let _ = kill_process(process, signal);
        }
    }

    fn process_id(&self) -> Pid {
        let text = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        Pid::from_raw(text.lines().next().unwrap().parse().unwrap()).unwrap()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program as the user of the server and with an empty environment.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.env_clear().env("PATH", env::var_os("PATH").unwrap_or_default());
        command.env("LC_ALL", "C").current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        for supervisor in &mut self.supervisors {
            drop(supervisor.stdin.take());
            supervisor.wait().unwrap();
        }
    }
}

/// The processes whose parent is this one.
fn children(parent: Pid) -> Vec<Pid> {
    let mut found = vec![];
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may contain spaces.
        let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let is_child = fields.nth(1) == Some(&parent.as_raw_nonzero().to_string());
        let pid = entry.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
        found.extend(pid.filter(|_| is_child));
    }
    found
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// The folder of the programs, which Debian keeps off the path.
fn find_programs() -> Option<PathBuf> {
    let packaged = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let packaged = packaged.map(|version| version.path().join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let has_all = |folder: &Path| {
        let mut programs = ["initdb", "pg_isready", "postgres", "psql"].iter();
        programs.all(|program| folder.join(program).exists())
    };
    packaged.chain(env::split_paths(&path)).find(|folder| has_all(folder))
}
