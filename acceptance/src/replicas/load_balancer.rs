//! A real HAProxy in front of replicas: each request goes to the next replica, and no client stays at one.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use creole_test_wait::blocking::{eventually, within};
use tempfile::TempDir;

use super::valkey_server::free_port;
use crate::http::Request;
use crate::peers::{haproxy, if_installed};
use crate::process_under_test::ChildGuard;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The header that names the replica of a response.
const SERVED_BY: &str = "x-served-by";

/// What it does, without its addresses. It checks the readiness of the replicas five times a second.
const CONFIGURATION: &str = "defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 60s
    retry-on conn-failure empty-response
    option redispatch 1
backend replicas
    balance roundrobin
    http-response set-header X-Served-By %s
    http-check send meth GET uri /ready ver HTTP/1.1 hdr Host localhost
    option httpchk
    default-server check inter 200ms fall 1 rise 1
";

/// A running load balancer. It ends when dropped.
pub struct LoadBalancer {
    _process: ChildGuard,
    folder: TempDir,
    address: SocketAddr,
}

impl LoadBalancer {
    /// Starts it in front of these replicas. `None` if it cannot be installed; with `CI=true` that is a failure.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn start(replicas: &[SocketAddr]) -> Option<Self> {
        if_installed("HAProxy", haproxy::prepared())?;
        let folder = tempfile::tempdir().expect("a folder");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(Ipv4Addr::LOCALHOST)));
        let file = folder.path().join("haproxy.cfg");
        fs::write(&file, configuration(&folder, address, replicas)).expect("a configuration");
        let mut command = Command::new("haproxy");
        command.args(["-db", "-q", "-f"]).arg(&file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let balancer = Self { _process: ChildGuard::start(&mut command), folder, address };
        let is_ready = || {
            let ready = Request::new("GET", "/ready").send(address);
            ready.is_ok_and(|response| response.head.status == 200)
        };
        assert!(within(PATIENCE, is_ready).is_some(), "HAProxy does not start");
        Some(balancer)
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes a replica away: it gets no further request, and its connections are cut.
    pub fn remove(&self, replica: &str) {
        self.control(&format!("set server replicas/{replica} state maint"));
        self.control(&format!("shutdown sessions server replicas/{replica}"));
    }

    /// Gives a replica requests again.
    pub fn restore(&self, replica: &str) {
        self.control(&format!("set server replicas/{replica} state ready"));
        eventually("the replica is used again", || self.field(replica, "status") == "UP");
    }

    /// How many requests a replica has got.
    ///
    /// # Panics
    /// When the load balancer does not say so.
    #[must_use]
    pub fn requests_to(&self, replica: &str) -> u64 {
        self.field(replica, "stot").parse().expect("a number")
    }

    /// A field of the statistics of a replica.
    fn field(&self, replica: &str, field: &str) -> String {
        let statistics = self.control("show stat");
        let mut lines = statistics.lines();
        let names = lines.next().expect("a line of names").trim_start_matches("# ");
        let position = names.split(',').position(|name| name == field).expect("the field");
        let is_replica = |line: &&str| line.starts_with(&format!("replicas,{replica},"));
        let line = lines.find(is_replica).expect("the replica");
        line.split(',').nth(position).expect("the value").to_owned()
    }

    /// Sends a command to its control socket, and returns the response.
    fn control(&self, command: &str) -> String {
        let mut stream = UnixStream::connect(control_in(&self.folder)).expect("the control socket");
        writeln!(stream, "{command}").expect("a command");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        response
    }
}

/// The name of the replica that a response came from.
///
/// # Panics
/// When the response does not come from the load balancer.
#[must_use]
pub fn served_by(head: &crate::http::Head) -> String {
    head.field(SERVED_BY).expect("the load balancer names the replica").to_owned()
}

/// The name of a replica by its number.
#[must_use]
pub fn name_of(number: usize) -> String {
    format!("replica-{number}")
}

fn configuration(folder: &TempDir, address: SocketAddr, replicas: &[SocketAddr]) -> String {
    let control = control_in(folder);
    let mut text = format!("global\n    stats socket {} level admin\n", control.display());
    text += CONFIGURATION;
    for (number, replica) in replicas.iter().enumerate() {
        // Writing to a string cannot fail.
        _ = writeln!(text, "    server {} {replica}", name_of(number));
    }
    _ = writeln!(text, "frontend clients\n    bind {address}\n    default_backend replicas");
    text
}

fn control_in(folder: &TempDir) -> PathBuf {
    folder.path().join("control")
}
