//! A real WordPress of Debian's packages, with its own database and the test platform of `acceptance/peers/wordpress`.

use std::fs;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use creole_test_wait::blocking::within;
use serde_json::Value;
use tempfile::TempDir;

use super::install::{Missing, folder, once, read, source, tool};
use crate::canaries;

/// How long the database and the site may take to start.
const BEGINNING: Duration = Duration::from_secs(60);

/// The maximum number of ports to try.
const ATTEMPTS: usize = 5;

/// Runs its arguments until its own input ends, which happens when the test is gone, and then kills the whole group.
const WATCHED: &str = "\"$@\" & cat >/dev/null; kill -s KILL 0";

/// A prepared site that can be started.
#[derive(Clone, Debug)]
pub struct WordPress {
    folder: PathBuf,
}

/// A running site. It ends with this value, or with the test.
#[derive(Debug)]
pub struct RunningSite {
    address: SocketAddr,
    passwords: Vec<(String, String)>,
    processes: Vec<Child>,
    run: TempDir,
}

impl WordPress {
    /// The site, prepared before from the same files, or prepared now.
    pub fn prepared() -> Result<Self, Missing> {
        let files = ["prepare.sh", "database.sh", "install.php", "wp-config.php", "router.php"];
        let sources: Result<Vec<String>, Missing> =
            files.iter().map(|file| read(&source(&format!("wordpress/{file}")))).collect();
        let folder = folder("wordpress");
        once("wordpress", &sources?.concat(), &folder.join("database.tar"), || {
            let mut script = Command::new("sh");
            script.arg(source("wordpress/prepare.sh")).arg(&folder);
            tool("sh", &mut script).map(drop)
        })?;
        Ok(Self { folder })
    }

    /// Starts the site with these variables, which `wp-config.php` and `router.php` read.
    pub fn start(&self, variables: &[(&str, &str)]) -> Result<RunningSite, String> {
        let told = |error: std::io::Error| error.to_string();
        let run = tempfile::tempdir().map_err(told)?;
        let plugins = run.path().join("plugins");
        let database = run.path().join("database");
        fs::create_dir(&plugins).map_err(told)?;
        fs::create_dir(&database).map_err(told)?;
        for file in ["platform.php", "platform-more.php"] {
            fs::copy(source(&format!("wordpress/{file}")), plugins.join(file)).map_err(told)?;
        }
        open_to_all(run.path())?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(self.folder.join("database.tar")).arg("-C").arg(&database);
        tool("tar", &mut tar).map_err(|missing| missing.to_string())?;
        let mut shell = Command::new("sh");
        shell.arg(source("wordpress/database.sh")).arg(&database);
        let mut processes = vec![watched(&shell, &run.path().join("database.log"))?];
        let socket = database.join("socket");
        within(BEGINNING, || std::os::unix::net::UnixStream::connect(&socket).is_ok())
            .ok_or_else(|| log_tail(&run, "database.log"))?;
        let log = run.path().join("php.log");
        let mut listening = None;
        for _ in 0..ATTEMPTS {
            let address = free_address().map_err(told)?;
            let process = self.serve(address, &run, variables)?;
            if listens(&log) {
                listening = Some((address, process));
                break;
            }
            end(process);
        }
        let (address, process) = listening.ok_or_else(|| log_tail(&run, "php.log"))?;
        processes.push(process);
        let passwords = read(&self.folder.join("passwords")).map_err(|it| it.to_string())?;
        let passwords = passwords.lines().filter_map(|line| line.split_once('='));
        let passwords = passwords.map(|(name, word)| (name.to_owned(), word.to_owned())).collect();
        Ok(RunningSite { address, passwords, processes, run })
    }

    /// Starts PHP, whose port may be taken.
    fn serve(
        &self,
        address: SocketAddr,
        run: &TempDir,
        variables: &[(&str, &str)],
    ) -> Result<Child, String> {
        let mut php = Command::new("php");
        php.args(["-d", "display_errors=stderr", "-S", &address.to_string(), "-t"]);
        php.arg(self.folder.join("site")).arg(self.folder.join("site/router.php"));
        php.env("TEST_DATABASE", run.path().join("database/socket"));
        php.env("TEST_PLUGINS", run.path().join("plugins"));
        php.env("PHP_CLI_SERVER_WORKERS", "3").envs(variables.iter().copied());
        watched(&php, &run.path().join("php.log"))
    }
}

impl RunningSite {
    /// The URL of its front page.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The Application Password of a user: `admin`, `ed` (an editor) or `sam` (a subscriber).
    #[must_use]
    pub fn password(&self, user: &str) -> &str {
        let found = self.passwords.iter().find(|(name, _)| name == user);
        let password = found.map_or("", |(_, password)| password);
        canaries::watch(password);
        password
    }

    /// Adds a file to the plugins, or removes it.
    pub fn plugin(&self, name: &str, text: Option<&str>) {
        let path = self.run.path().join("plugins").join(name);
        let done = match text {
            Some(text) => fs::write(path, text),
            None if path.exists() => fs::remove_file(path),
            None => Ok(()),
        };
        done.expect("the folder of plugins is ours");
    }

    /// The requests to the platform's routes so far: `method`, `route`, `query` and `body` of each.
    #[must_use]
    pub fn platform_requests(&self) -> Vec<Value> {
        let log = self.run.path().join("plugins/asked.jsonl");
        let lines = fs::read_to_string(log).unwrap_or_default();
        lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The log of PHP.
    #[must_use]
    pub fn log(&self) -> String {
        log_tail(&self.run, "php.log")
    }
}

impl Drop for RunningSite {
    fn drop(&mut self) {
        self.processes.drain(..).rev().for_each(end);
    }
}

/// Ends a process with its group.
fn end(mut process: Child) {
    drop(process.stdin.take());
    // It ends itself.
    let _ = process.wait();
}

/// Whether PHP reports that it listens, before it reports that it cannot.
fn listens(log: &Path) -> bool {
    let text = || fs::read_to_string(log).unwrap_or_default();
    let decided = || text().contains(" started") || text().contains("Failed to listen");
    within(BEGINNING, decided).is_some() && text().contains(" started")
}

/// Starts a command in its own group that ends with this process.
fn watched(command: &Command, log: &Path) -> Result<Child, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut shell = Command::new("sh");
    shell.args(["-c", WATCHED, "sh"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    let log = File::create(log).map_err(told)?;
    shell.stdin(Stdio::piped()).stdout(log.try_clone().map_err(told)?).stderr(log);
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.spawn().map_err(told)
}

/// The database runs as an unprivileged user that needs access to its folder.
fn open_to_all(folder: &Path) -> Result<(), String> {
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder, permissions).map_err(|error| error.to_string())
}

fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

fn log_tail(run: &TempDir, log: &str) -> String {
    fs::read_to_string(run.path().join(log)).unwrap_or_default()
}
