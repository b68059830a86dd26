//! Where the commands of a document run: a folder, ports of this run, and programs in the background.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use creole_acceptance::peers::idp::{self, IdentityProvider};
use creole_acceptance::peers::{if_installed, prometheus};
use creole_acceptance::process_under_test::{ChildGuard, PATIENCE, shell};
use creole_acceptance::stage::stdio::repository;
use creole_test_wait::blocking::within;

/// The port of the commands that listen. Each of them gets a port of its own.
const LISTENER: u16 = 8080;

/// The ports of configurations: of the server, of a second one, of the admin listener, of Prometheus, and of a store. A
/// document has one of each.
const CONFIGURED: [u16; 5] = [8443, 8081, 9464, 9090, 6379];

/// The server and the issuer that documents show.
const SHOWN: [&str; 2] = ["https://mcp.example.com", "https://id.example.com"];

/// The folder, the ports and the programs of one document.
pub(crate) struct Stage<'a> {
    pub(crate) folder: &'a Path,
    /// The ports that the document shows, and those of this run.
    ports: Vec<(u16, u16)>,
    background: Vec<ChildGuard>,
    /// The authorization server of the document.
    provider: Option<IdentityProvider>,
    /// Whether the document uses Prometheus.
    has_prometheus: bool,
}

impl<'a> Stage<'a> {
    /// The stage of a document; `None` if it needs a program that is not installed.
    pub(crate) fn new(folder: &'a Path, document: &str) -> Option<Self> {
        let provider = match document.contains("creole login ") {
            true => Some(idp::provider(&[])?),
            false => None,
        };
        let has_prometheus = document.contains("\nprometheus ");
        if has_prometheus {
            if_installed("prometheus", prometheus::prepared())?;
        }
        let ports = CONFIGURED.map(|shown| (shown, free_port())).to_vec();
        Some(Self { folder, ports, background: Vec::new(), provider, has_prometheus })
    }

    /// Starts a command that listens, and waits until it does.
    pub(crate) fn start(&mut self, command: &str) -> Result<(), String> {
        let mentioned = |port: &u16| {
            ["--port ", ":"].iter().any(|prefix| command.contains(&format!("{prefix}{port}")))
        };
        let shown = [LISTENER].into_iter().chain(CONFIGURED).find(mentioned);
        let shown = shown.unwrap_or(CONFIGURED[0]);
        if shown == LISTENER {
            self.ports.retain(|(shown, _)| *shown != LISTENER);
            self.ports.push((LISTENER, free_port()));
        }
        let command = self.with_addresses(&format!("exec {command}"));
        let mut shell = self.shell(&command);
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        self.background.push(ChildGuard::start(&mut shell));
        let port = self.port(shown).unwrap_or(shown);
        within(PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok())
            .ok_or_else(|| format!("{command} does not listen"))
    }

    /// A shell in the folder.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let prefix = match self.has_prometheus {
            true => format!("PATH=\"$PATH:{}\"; ", prometheus::programs().display()),
            false => String::new(),
        };
        shell(self.folder, &format!("{prefix}{script}"))
    }

    fn port(&self, shown: u16) -> Option<u16> {
        self.ports.iter().find(|(known, _)| *known == shown).map(|(_, port)| *port)
    }

    /// The text with the addresses of this run.
    pub(crate) fn with_addresses(&self, text: &str) -> String {
        let mut text =
            text.replace(" packaging/", &format!(" {}/packaging/", repository().display()));
        if let Some(provider) = &self.provider {
            let real = [provider.server(""), provider.issuer()];
            for (shown, real) in SHOWN.iter().zip(&real) {
                text = text.replace(shown, real);
            }
        }
        for (shown, port) in &self.ports {
            text = text.replace(&format!(":{shown}"), &format!(":{port}"));
            text = text.replace(&format!("--port {shown}"), &format!("--port {port}"));
        }
        text
    }

    /// The output with the addresses that the documents show.
    pub(crate) fn shown(&self, printed: &str) -> String {
        let mut text = printed.to_owned();
        if let Some(provider) = &self.provider {
            text = text.replace(&provider.server(""), SHOWN[0]);
            text = text.replace(&provider.issuer(), SHOWN[1]);
        }
        for (shown, port) in &self.ports {
            text = text.replace(&format!(":{port}"), &format!(":{shown}"));
        }
        text
    }
}

/// Whether a command has the address of a server that the document configures.
pub(crate) fn mentions_configured_port(command: &str) -> bool {
    CONFIGURED.iter().any(|port| command.contains(&format!(":{port}")))
}

/// A port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map_or(0, |address| address.port())
}
