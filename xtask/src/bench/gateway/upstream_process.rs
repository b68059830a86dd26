//! The upstream of a gateway: a new process for each sample, on the core of the gateway.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::super::sample::Driver;

/// A running server on HTTP. Dropping it ends the process.
pub(super) struct UpstreamProcess {
    child: Child,
    /// Its address.
    pub(super) address: SocketAddr,
}

impl UpstreamProcess {
    /// Starts a server and waits until it listens.
    pub(super) fn start(
        program: &Path,
        arguments: &[&str],
        driver: &Driver,
    ) -> Result<Self, String> {
        let mut command = match &driver.cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cores.server]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.args(arguments).current_dir(&driver.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| format!("cannot start the upstream: {error}"))?;
        let errors = child.stderr.take().map(BufReader::new);
        let mut lines = errors.into_iter().flat_map(BufRead::lines).map_while(Result::ok);
        let address = lines.find_map(|line| listening(&line));
        // Later output fits into the pipe, since the server logs no calls.
        let upstream = Self { child, address: address.unwrap_or((Ipv4Addr::LOCALHOST, 0).into()) };
        match address {
            Some(_) => Ok(upstream),
            None => Err("the upstream exited before it listened".to_owned()),
        }
    }

    /// The URL of its endpoint.
    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for UpstreamProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listening(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(" listens on http://")?;
    rest.split('/').next()?.parse().ok()
}

/// A free port, for a gateway that needs an explicit one.
pub(super) fn free_address() -> Result<SocketAddr, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(|error| format!("no free port: {error}"))
}
