//! The real binary as a process that a test can flood, stall, measure and kill.
//!
//! Transcripts cover the protocol. This module covers the process: its streams, its memory and its end.

pub mod finished_command;
pub mod resource_usage;

use std::collections::BTreeSet;
#[cfg(unix)]
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{env, thread};

use creole_test_wait::blocking::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::canaries;
use crate::stage::stdio::binary;
use resource_usage::ResourceUsage;

/// How long a test waits: only a server that hangs takes longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The exit code, stdout and stderr of `creole config check` on the `creole.toml` of a folder.
#[track_caller]
#[must_use]
pub fn check(folder: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(binary().expect("the binary"))
        .args(["config", "check", "creole.toml"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A process that is killed when dropped.
#[derive(Debug)]
pub struct ChildGuard(Child);

/// A running `creole serve` on three pipes.
pub struct Server {
    process: ChildGuard,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    log: Option<StderrReader>,
    last_id: u64,
    _data: Option<TempDir>,
}

/// The exit of a server.
#[derive(Debug)]
pub struct ServerExit {
    /// Its exit code, or `None` if a signal ended it.
    pub code: Option<i32>,
    /// The unread lines of stdout.
    pub output: Vec<String>,
    /// Its whole stderr output.
    pub log: String,
}

/// The command `creole serve` with these arguments and the data directory `data`.
#[must_use]
pub fn serve(data: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(binary().expect("the binary under test"));
    command.arg("serve").args(words);
    at_home(&mut command, data);
    command
}

/// Removes every `CREOLE_` variable of the user from a command. Its data directory is `data`.
fn at_home(command: &mut Command, data: &Path) {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("CREOLE_") {
            command.env_remove(name);
        }
    }
    command.env("CREOLE_DATA_DIR", data).current_dir(data);
}

/// A shell that runs a script in this folder, which is also its data directory. The binary under test is its command
/// `creole`, whatever its file is called.
#[must_use]
#[cfg(unix)]
pub fn shell(folder: &Path, script: &str) -> Command {
    let commands = folder.join(".commands");
    fs::create_dir_all(&commands).expect("a folder for the command");
    let link = commands.join("creole");
    if !link.exists() {
        let binary = binary().expect("the binary under test");
        std::os::unix::fs::symlink(binary, link).expect("a link to the binary");
    }
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    at_home(&mut command, folder);
    command.env("PATH", format!("{}:{path}", commands.display()));
    command
}

/// A request as one line, its newline included.
#[must_use]
pub fn request(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// A `tools/call` as one line, its newline included.
#[must_use]
pub fn call(id: u64, tool: &str, arguments: &Value) -> String {
    request(id, "tools/call", &json!({"name": tool, "arguments": arguments}))
}

/// The two lines of a handshake. Its response has the id 0.
#[must_use]
pub fn handshake() -> String {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "acceptance", "version": "1"},
    });
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    format!("{}{initialized}\n", request(0, "initialize", &params))
}

impl ChildGuard {
    /// Its open sockets.
    #[must_use]
    #[track_caller]
    pub fn sockets(&self) -> BTreeSet<PathBuf> {
        resource_usage::sockets(self.0.id())
    }

    /// Starts a command.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    }

    /// The process, for access to its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.0
    }

    /// Its current resource usage.
    #[must_use]
    #[track_caller]
    pub fn weight(&self) -> ResourceUsage {
        ResourceUsage::of(self.0.id())
    }

    /// Waits for it to exit without a signal, and returns its total processor time.
    #[track_caller]
    #[must_use]
    pub fn processor_time_until_end(&self) -> Duration {
        resource_usage::processor_time_until_end(self.0.id())
    }

    /// Waits for it to exit without a signal, and returns the processor time of its first thread, to the nanosecond.
    #[track_caller]
    #[must_use]
    pub fn first_thread_until_end(&self) -> Duration {
        resource_usage::processor_time_until_end(self.0.id());
        resource_usage::first_thread(self.0.id())
    }

    /// Waits for it to exit without a signal. Returns its exit code, or `None` if a signal ended it.
    #[track_caller]
    pub fn wait(&mut self) -> Option<i32> {
        let status = eventually("it ends", || self.0.try_wait().expect("it can be waited for"));
        status.code()
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        // Fails only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts `creole serve` with these arguments and an empty data directory.
    #[must_use]
    pub fn start(words: &[&str]) -> Self {
        let data = tempfile::tempdir().expect("a data directory");
        let mut server = Self::start_in(data.path(), words);
        server._data = Some(data);
        server
    }

    /// Starts `creole serve` with these arguments and this data directory.
    #[must_use]
    pub fn start_in(data: &Path, words: &[&str]) -> Self {
        Self::start_command(serve(data, words))
    }

    /// Starts this command, which serves.
    #[must_use]
    pub fn start_command(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = ChildGuard::start(&mut command);
        let child = process.child();
        let input = child.stdin.take();
        let (sender, output) = channel();
        let stdout = child.stdout.take().expect("its stdout");
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let log = child.stderr.take().map(StderrReader::of);
        Self { process, input, output, log, last_id: 0, _data: None }
    }

    /// Performs the handshake and takes the response.
    #[must_use]
    pub fn greeted(mut self) -> Self {
        self.write(handshake());
        let initialize_result = self.answer();
        assert!(initialize_result["result"]["protocolVersion"].is_string(), "{initialize_result}");
        self
    }

    /// Writes bytes. If the server has ended, the test notices missing responses.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(bytes.as_ref());
        }
    }

    /// The next line of stdout.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.output.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no line arrived within {PATIENCE:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("its stdout ended: {:?}", self.end()),
        }
    }

    /// The next line of stdout, as JSON.
    #[track_caller]
    pub fn answer(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not JSON: {error}: {line}"))
    }

    /// Sends a request and takes the next line, which must be its response.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        self.write(request(self.last_id, method, params));
        let response = self.answer();
        assert_eq!(response["id"], json!(self.last_id), "{response}");
        response
    }

    /// Calls a tool and takes the next line, which must be its response.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Sends a ping and takes the next line, which must be its response.
    #[track_caller]
    pub fn ping(&mut self) {
        let response = self.request("ping", &json!({}));
        assert_eq!(response["result"], json!({}), "{response}");
    }

    /// Its current resource usage.
    #[must_use]
    pub fn weight(&self) -> ResourceUsage {
        self.process.weight()
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Waits until its stderr contains this text.
    #[track_caller]
    pub fn until_said(&self, description: &str) {
        let log = self.log.as_ref().expect("its stderr");
        let missing = || format!("stderr never contained {description:?}: {}", log.so_far());
        eventually(missing, || log.so_far().contains(description));
    }

    /// Sends it a signal, by its name.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let script = format!("kill -s {name} {}", self.id());
        let status = Command::new("sh").args(["-c", &script]).status();
        assert!(status.is_ok_and(|status| status.success()), "{script}");
    }

    /// Ends its input. It may still respond.
    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Ends its input and waits until it has ended.
    #[track_caller]
    #[must_use]
    pub fn finish(mut self) -> ServerExit {
        self.end_input();
        self.end()
    }

    /// Waits until it has ended, with its input still open.
    #[track_caller]
    #[must_use]
    pub fn until_ended(mut self) -> ServerExit {
        self.end()
    }

    /// Kills it with a signal that it cannot handle, and takes its output.
    #[must_use]
    pub fn kill(mut self) -> ServerExit {
        self.process.child().kill().expect("it can be killed");
        self.end()
    }

    #[track_caller]
    fn end(&mut self) -> ServerExit {
        let code = self.process.wait();
        let log = self.log.take().map(StderrReader::all).unwrap_or_default();
        canaries::assert_absent("the log of a server", &log);
        ServerExit { code, output: self.output.iter().collect(), log }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(log) = &self.log {
            canaries::assert_absent("the log of a server", &log.so_far());
        }
    }
}

/// Reads the stderr of a process as it arrives.
#[derive(Debug)]
struct StderrReader {
    said: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl StderrReader {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let said: Arc<Mutex<Vec<u8>>> = Arc::default();
        let heard = Arc::clone(&said);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            // The text before an error is still useful.
            while let Ok(length @ 1..) = from.read(&mut chunk) {
                heard.lock().expect("the lock is not poisoned").extend_from_slice(&chunk[..length]);
            }
        });
        Self { said, reader }
    }

    fn so_far(&self) -> String {
        let said = self.said.lock().expect("the lock is not poisoned");
        String::from_utf8_lossy(&said).into_owned()
    }

    /// The whole text, once the process has ended.
    fn all(self) -> String {
        let Self { said, reader } = self;
        // The collected text is available even if the reader panicked.
        let _ = reader.join();
        let said = said.lock().expect("the lock is not poisoned");
        String::from_utf8_lossy(&said).into_owned()
    }
}

/// The text of a result, or of the error.
#[track_caller]
pub fn told(response: &Value) -> Result<String, String> {
    if let Some(message) = response["error"]["message"].as_str() {
        return Err(message.to_owned());
    }
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("no text: {response}")).to_owned();
    if result["isError"] == true { Err(text) } else { Ok(text) }
}
