//! A real Prometheus, and `promtool`: they judge the metrics, the alert rules and the dashboard's queries.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use creole_test_wait::blocking::within;
use serde_json::Value;
use tempfile::TempDir;

use super::install::{Missing, folder, once, read, source, tool};
use crate::http::Request;
use crate::process_under_test::ChildGuard;

/// How long it may take to start.
const BEGINNING: Duration = Duration::from_secs(30);

/// Installs both programs, if that was not done before.
pub fn prepared() -> Result<(), Missing> {
    let script = source("prometheus/prepare.sh");
    let folder = folder("prometheus");
    once("prometheus", &read(&script)?, &program("promtool"), || {
        let mut shell = Command::new("sh");
        shell.arg(&script).arg(&folder);
        tool("sh", &mut shell).map(drop)
    })
}

/// The folder of the installed programs.
pub fn programs() -> PathBuf {
    folder("prometheus").join("root/usr/bin")
}

fn program(name: &str) -> PathBuf {
    programs().join(name)
}

/// Runs `promtool` with these arguments in a folder, with this text as its input.
///
/// # Panics
/// When it cannot be installed or started.
pub fn promtool(folder: &Path, arguments: &[&str], input: &str) -> Output {
    prepared().expect("promtool is installed");
    let mut child = Command::new(program("promtool"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut stdin = child.stdin.take().expect("its input is a pipe");
    let text = input.to_owned();
    let writing = std::thread::spawn(move || {
        // A program that fails early does not read everything.
        _ = std::io::Write::write_all(&mut stdin, text.as_bytes());
    });
    let output = child.wait_with_output().expect("promtool ends");
    writing.join().expect("its input was written");
    output
}

/// A running Prometheus that scrapes one target each second. It ends when dropped.
pub struct Prometheus {
    _process: ChildGuard,
    _data: TempDir,
    address: SocketAddr,
}

impl Prometheus {
    /// Starts it with a job `creole` that scrapes `/metrics` at this address with this bearer token.
    ///
    /// # Errors
    /// When it cannot be installed or started.
    pub fn start(target: SocketAddr, token: Option<&str>) -> Result<Self, Missing> {
        prepared()?;
        let wrong =
            |error: &dyn std::fmt::Display| Missing(format!("Prometheus does not start: {error}"));
        let data = tempfile::tempdir().map_err(|error| wrong(&error))?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| wrong(&error))?;
        let authorization = token.map_or_else(String::new, |token| {
            format!("    authorization:\n      credentials: {}\n", Value::from(token))
        });
        let config = format!(
            "global:\n  scrape_interval: 1s\n  scrape_timeout: 1s\nscrape_configs:\n  \
             - job_name: creole\n{authorization}    static_configs:\n      - targets: [\"{target}\"]\n"
        );
        let file = data.path().join("prometheus.yml");
        fs::write(&file, config).map_err(|error| wrong(&error))?;
        let mut command = Command::new(program("prometheus"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let process = ChildGuard::start(&mut command);
        let is_ready = || {
            let response = Request::new("GET", "/-/ready").send(address);
            response.is_ok_and(|response| response.head.status == 200)
        };
        within(BEGINNING, is_ready).ok_or_else(|| wrong(&"it is not ready in time"))?;
        Ok(Self { _process: process, _data: data, address })
    }

    /// The results of an instant query.
    ///
    /// # Panics
    /// When Prometheus refuses the query.
    pub fn query(&self, query: &str) -> Vec<Value> {
        let path = format!("/api/v1/query?query={}", percent_encoded(query));
        let response = Request::new("GET", &path).send(self.address).expect("a response");
        let mut body: Value = serde_json::from_str(&response.text()).expect("a JSON response");
        assert_eq!(body["status"], "success", "{query}: {body}");
        match body["data"]["result"].take() {
            Value::Array(results) => results,
            other => panic!("{query}: {other}"),
        }
    }

    /// The names of all metrics that it has.
    pub fn names(&self) -> Vec<String> {
        let response = Request::new("GET", "/api/v1/label/__name__/values")
            .send(self.address)
            .expect("a response");
        let body: Value = serde_json::from_str(&response.text()).expect("a JSON response");
        serde_json::from_value(body["data"].clone()).expect("names")
    }
}

fn percent_encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
