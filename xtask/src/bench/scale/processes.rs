//! The replicas and their store, as processes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// How often the start of the store is looked at, and how often at most.
const PAUSE: Duration = Duration::from_millis(20);
const ATTEMPTS: usize = 250;

/// A running replica. Dropping it ends the process.
pub(super) struct Replica {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Replica {
    /// Starts a replica with this configuration and waits until it listens.
    pub(super) fn start(creole: &Path, configuration: &Path) -> Result<Self, String> {
        let mut command = Command::new(creole);
        command.arg("serve").arg(configuration).args(["--http", "127.0.0.1:0"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start creole: {error}"))?;
        let errors = child.stderr.take().map(BufReader::new);
        let mut lines = errors.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let address = lines.find_map(|line| {
            let (_, url) = line.split_once(" listens on http://")?;
            url.split('/').next()?.trim().parse().ok()
        });
        // Later output fits into the pipe, since the server logs no calls.
        let unknown = (Ipv4Addr::LOCALHOST, 0).into();
        let replica = Self { child, address: address.unwrap_or(unknown) };
        address.map(|_| replica).ok_or_else(|| "a replica ended before it listened".to_owned())
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A Redis server without persistence. Dropping it ends the process.
pub(super) struct StoreServer {
    child: Child,
    port: u16,
}

impl StoreServer {
    /// Starts it in a folder, on a free port.
    pub(super) fn start(folder: &Path) -> Result<Self, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| format!("no free port: {error}"))?.port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| format!("cannot start redis-server: {error}; install redis-server"))?;
        let server = Self { child, port };
        for _ in 0..ATTEMPTS {
            if server.operations().is_ok() {
                return Ok(server);
            }
            thread::sleep(PAUSE);
        }
        Err("redis-server does not listen".to_owned())
    }

    /// Its address for a configuration.
    pub(super) fn url(&self) -> String {
        format!("valkey://127.0.0.1:{}/0", self.port)
    }

    /// Its process id.
    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The operations of replicas so far: scripts and messages. The commands inside of a script do not count again.
    pub(super) fn operations(&self) -> Result<f64, String> {
        let explain = |error| format!("cannot ask redis-server: {error}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(explain)?;
        stream.write_all(b"INFO commandstats\r\nQUIT\r\n").map_err(explain)?;
        let mut text = String::new();
        stream.read_to_string(&mut text).map_err(explain)?;
        let counted = text.lines().filter_map(|line| {
            let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            let count: f64 = rest.split(',').next()?.parse().ok()?;
            ["eval", "evalsha", "publish", "wait"].contains(&command).then_some(count)
        });
        Ok(counted.sum())
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // Both fail only if the process has ended already.
    let _ = child.kill();
    let _ = child.wait();
}

/// The processor time of all threads of a process, in microseconds.
pub(super) fn processor_time_us(id: u32) -> Result<f64, String> {
    let explain = |error| format!("cannot read the processor time of process {id}: {error}");
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir(format!("/proc/{id}/task")).map_err(explain)? {
        let path = thread.map_err(explain)?.path().join("schedstat");
        // A thread may end meanwhile.
        let Ok(text) = fs::read_to_string(path) else { continue };
        let time = text.split(' ').next().and_then(|number| number.parse::<f64>().ok());
        nanoseconds += time.unwrap_or_default();
    }
    Ok(nanoseconds / 1_000.0)
}
