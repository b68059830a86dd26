//! A real server for tests, on a Unix socket in a temporary folder. It ends with the test.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use creole_test_wait::blocking::eventually;

use super::super::{State, StateLimits};
use super::{ValkeySettings, ValkeyState};

/// Starts the server, tells its process id, and ends it when the input of the shell ends: also when the test is killed.
const SUPERVISOR: &str = r#"redis-server "$@" >/dev/null 2>&1 & server=$!
echo $server
cat >/dev/null
kill -KILL $server 2>/dev/null
wait"#;

/// Generous: the machine may be busy.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

pub(in super::super) struct TestServer {
    folder: PathBuf,
    arguments: Vec<String>,
    process: Option<(Child, String)>,
}

impl TestServer {
    /// Whether the server is installed. If not, this is reported, and with `CI=true` the test fails.
    pub(super) fn is_installed() -> bool {
        let version = Command::new("redis-server").arg("--version").output();
        let is_installed = version.is_ok_and(|output| output.status.success());
        if !is_installed {
            let is_required = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_required, "redis-server is not installed (Debian: redis-server)");
            eprintln!("NOT TESTED with redis-server: it is not installed (Debian: redis-server)");
        }
        is_installed
    }

    /// The server that all tests of this process share.
    fn shared() -> &'static Self {
        static SHARED: OnceLock<TestServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server with these options.
    pub(super) fn start(options: &[&str]) -> Self {
        let folder = new_folder();
        let socket = folder.join("socket").display().to_string();
        let mut arguments = vec!["--port", "0", "--save", "", "--unixsocket", socket.as_str()];
        arguments.extend(options);
        Self::start_in(folder.clone(), arguments)
    }

    /// A sentinel on a port, which watches the server on another port under the name `main`.
    pub(super) fn start_sentinel(port: u16, master_port: u16) -> Self {
        let folder = new_folder();
        let (file, socket) = (folder.join("sentinel.conf"), folder.join("socket"));
        let settings = format!(
            "port {port}\nunixsocket {}\nsentinel monitor main 127.0.0.1 {master_port} 1\n",
            socket.display()
        );
        std::fs::write(&file, settings).unwrap();
        let file = file.display().to_string();
        Self::start_in(folder, vec![file.as_str(), "--sentinel"])
    }

    fn start_in(folder: PathBuf, arguments: Vec<&str>) -> Self {
        let arguments = arguments.into_iter().map(str::to_owned).collect();
        let mut server = Self { folder, arguments, process: None };
        server.restart();
        server
    }

    /// Starts it on the same socket, without any data.
    pub(super) fn restart(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "redis-server"]).args(&self.arguments);
        command.current_dir(&self.folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut id = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut id).unwrap();
        self.process = Some((child, id.trim().to_owned()));
        eventually("the server answers", || {
            let answer = self.command_line().arg("PING").output().unwrap();
            !answer.stdout.is_empty() && !answer.stdout.starts_with(b"LOADING")
        });
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        if let Some((mut child, id)) = self.process.take() {
            send_signal("-KILL", &id);
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }

    /// Sends a signal to the server.
    pub(super) fn signal(&self, signal: &str) {
        send_signal(signal, &self.process.as_ref().unwrap().1);
    }

    /// Runs a command of the server.
    pub(super) fn run(&self, words: &[&str]) -> String {
        let output = self.command_line().args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn command_line(&self) -> Command {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.socket()).env("REDISCLI_AUTH", "right").stderr(Stdio::null());
        command
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// Settings for this server.
    pub(super) fn settings(&self) -> ValkeySettings {
        ValkeySettings::new(format!("unix://{}", self.socket().display())).timeout(TEST_TIMEOUT)
    }

    /// A state with its own namespace.
    pub(super) async fn state(&self) -> State {
        let settings = self.settings().name(next_name());
        State::valkey(settings, StateLimits::default()).await.unwrap()
    }

    /// A backend with its own namespace on the shared server; `None` where no server is installed.
    pub(in super::super) async fn open_namespace(limits: StateLimits) -> Option<ValkeyState> {
        if !Self::is_installed() {
            return None;
        }
        let settings = Self::shared().settings().name(next_name());
        Some(ValkeyState::open(settings, limits).await.unwrap())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Removed at the end of a test, but not for the shared server, which is never dropped.
fn new_folder() -> PathBuf {
    tempfile::tempdir().unwrap().keep()
}

/// A port that is free now.
pub(super) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn send_signal(signal: &str, id: &str) {
    assert!(Command::new("kill").args([signal, id]).status().unwrap().success());
}
