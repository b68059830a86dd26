//! A real server for tests, on a Unix socket in a temporary folder. It ends with the test.

use std::io::{BufRead, BufReader};
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
    options: Vec<String>,
    process: Option<(Child, String)>,
}

impl TestServer {
    /// Whether the server is installed. If not, this is reported, and with `CI=true` the test fails.
    #[expect(clippy::print_stderr, reason = "a skipped test is reported on stderr")]
    pub(in super::super) fn is_installed() -> bool {
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
    pub(in super::super) fn shared() -> &'static Self {
        static SHARED: OnceLock<TestServer> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&[]))
    }

    /// A server with these options.
    pub(super) fn start(options: &[&str]) -> Self {
        // Removed at the end of a test, but not after the shared server, which nobody drops.
        let folder = tempfile::tempdir().unwrap().keep();
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { folder, options, process: None };
        server.restart();
        server
    }

    /// Starts it on the same socket, without any data.
    pub(super) fn restart(&mut self) {
        let mut command = Command::new("sh");
        command.args(["-c", SUPERVISOR, "redis-server", "--port", "0", "--save", ""]);
        command.arg("--unixsocket").arg(self.socket()).args(&self.options);
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

    /// A backend with its own namespace.
    pub(in super::super) async fn open_namespace(&self, limits: StateLimits) -> ValkeyState {
        ValkeyState::open(self.settings().name(next_name()), limits).await.unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

fn send_signal(signal: &str, id: &str) {
    assert!(Command::new("kill").args([signal, id]).status().unwrap().success());
}
