//! A receiver of OTLP, made of the official Python classes, and programs that use the OpenTelemetry SDK of Python.
//!
//! `acceptance/peers/README.md` describes them. The receiver refuses what the official definitions do not have.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use creole_test_wait::blocking::eventually;
use serde_json::Value;

use super::if_installed;
use super::install::{Missing, source, virtual_environment};
use crate::process_under_test::ChildGuard;

/// The name of the installation.
const NAME: &str = "otlp";

/// The command that runs a script of `acceptance/peers/otlp`. Installs what it needs.
pub fn command(script: &str) -> Result<Vec<OsString>, Missing> {
    let python = virtual_environment(NAME, "otlp/requirements.txt")?;
    // `-B` keeps compiled files out of the work tree.
    Ok(vec![python.into(), "-B".into(), source(&format!("otlp/{script}")).into()])
}

/// A running receiver. It ends when dropped.
pub struct Receiver {
    _process: ChildGuard,
    input: Mutex<ChildStdin>,
    lines: Arc<Mutex<Vec<Value>>>,
    port: u16,
    is_encrypted: bool,
}

/// A running receiver with these options. `None` if it cannot be installed, as for [`if_installed`].
#[track_caller]
#[must_use]
pub fn receiver(options: &[&str]) -> Option<Receiver> {
    if_installed("the OTLP receiver", Receiver::start(options))
}

impl Receiver {
    /// Starts a receiver, and waits until it listens.
    pub fn start(options: &[&str]) -> Result<Self, Missing> {
        let words = command("receiver.py")?;
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = ChildGuard::start(&mut command);
        let not_started = || Missing("the OTLP receiver did not start".to_owned());
        let input = process.child().stdin.take().ok_or_else(not_started)?;
        let output = process.child().stdout.take().ok_or_else(not_started)?;
        let mut output = BufReader::new(output).lines();
        let first = output.next().and_then(Result::ok).ok_or_else(not_started)?;
        let first: Value = serde_json::from_str(&first).map_err(|_| not_started())?;
        let port = first["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&lines);
        thread::spawn(move || {
            for line in output.map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Ok(Self {
            _process: process,
            input: Mutex::new(input),
            lines,
            port: port.ok_or_else(not_started)?,
            is_encrypted: options.contains(&"--certificate"),
        })
    }

    /// Its endpoint.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        format!("{scheme}://localhost:{}", self.port)
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets the response to the requests that follow, such as `{"http": 503}`; `{}` accepts them.
    pub fn set_response(&self, response: &Value) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(input, "{response}").expect("the receiver runs");
        drop(input);
        let is_set = |line: &Value| line["set"] == *response;
        eventually("the receiver takes the response", || self.lines().iter().rev().any(is_set));
    }

    /// All that it has received so far.
    ///
    /// # Panics
    /// When it refused a request.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = lines.iter().find(|line| line.get("error").is_some());
        assert!(error.is_none(), "the receiver refused a request: {error:?}");
        lines
    }

    /// What it has received of this kind: `span`, `metric`, `log` or `request`.
    #[must_use]
    pub fn items(&self, kind: &str) -> Vec<Value> {
        self.lines().iter().filter_map(|line| line.get(kind).cloned()).collect()
    }

    /// The spans of this name.
    #[must_use]
    pub fn spans(&self, name: &str) -> Vec<Value> {
        self.items("span").into_iter().filter(|span| span["name"] == name).collect()
    }

    /// Waits for a span of this name.
    #[must_use]
    pub fn span(&self, name: &str) -> Value {
        let what = || format!("a span {name}: {:#?}", self.items("span"));
        eventually(what, || self.spans(name).into_iter().next())
    }
}

/// What a client with the OpenTelemetry SDK says about its call: its own spans, and the text of the result.
pub fn call_traced(url: &str, tool: &str, arguments: &Value) -> Result<Value, String> {
    let words = command("client.py").map_err(|missing| missing.to_string())?;
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).args([url, tool, &arguments.to_string()]);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .map_err(|error| format!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// The command of a server with the OpenTelemetry SDK, which writes its spans to a file.
pub fn traced_server(spans: &Path) -> Result<Vec<OsString>, Missing> {
    let mut words = command("server.py")?;
    words.push(spans.into());
    Ok(words)
}
