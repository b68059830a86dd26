//! The compared gateways: which lanes they support, and how each is started.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::build::BuildFolder;
use super::super::sample::Era;
use super::lanes::{Lane, LaneProtocol};
use super::peers::{Package, PackageRegistry};

/// The server without a gateway.
pub(super) const DIRECT: &str = "direct";
/// The bare gateway of the targets: hyper as a server, hyper as a client, and nothing between.
pub(super) const BARE: &str = "bare relay";
/// The crate of that name, which is unrelated to the packages on PyPI and npm.
pub(super) const MCP_PROXY: &str = "mcp-proxy crate 0.6";
pub(super) const SUPERGATEWAY: &str = "supergateway 4.0";
pub(super) const MCP_PROXY_NPM: &str = "npm mcp-proxy 6.7";
pub(super) const MCP_PROXY_PYTHON: &str = "PyPI mcp-proxy 0.13";
pub(super) const FASTMCP: &str = "FastMCP 4.1 proxy";
pub(super) const MCP_REMOTE: &str = "mcp-remote 0.15";
/// The product.
pub(super) const CREOLE: &str = "creole";

/// A measured gateway.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) program: PathBuf,
}

/// The addresses of a gateway and its upstream.
pub(super) struct GatewayAddresses<'a> {
    /// The address that the client connects to, if the front is HTTP.
    pub(super) front: std::net::SocketAddr,
    /// The upstream on HTTP.
    pub(super) url: &'a str,
    /// The upstream on stdio: a program and its arguments.
    pub(super) command: &'a [String],
    /// The folder for configurations.
    pub(super) folder: &'a Path,
}

impl Contender {
    /// Whether it is measured on this lane: a peer only if it supports both ends, as documented and as observed.
    pub(super) fn takes(&self, lane: &Lane) -> bool {
        let is_legacy = lane.client == Era::Legacy && lane.server == Era::Legacy;
        match (self.name, lane.front, lane.behind) {
            (CREOLE, ..) => true,
            (DIRECT, ..) => lane.is_same_era(),
            (BARE, LaneProtocol::Http, LaneProtocol::Http) => lane.is_same_era(),
            (FASTMCP, LaneProtocol::Http, _)
            | (MCP_PROXY_NPM, LaneProtocol::Http, LaneProtocol::Stdio) => true,
            // It forwards messages unchanged, in the era in which they arrive.
            (SUPERGATEWAY, LaneProtocol::Http, LaneProtocol::Stdio) => lane.is_same_era(),
            (MCP_REMOTE, LaneProtocol::Stdio, LaneProtocol::Http) => lane.client == Era::Legacy,
            (MCP_PROXY, LaneProtocol::Http, _)
            | (MCP_PROXY_PYTHON, LaneProtocol::Http, LaneProtocol::Stdio) => is_legacy,
            _ => false,
        }
    }

    /// Whether it is a peer, without which a run is still useful.
    pub(super) fn is_peer(&self) -> bool {
        ![DIRECT, BARE, CREOLE].contains(&self.name)
    }

    /// The name of the tool `echo` behind it.
    pub(super) fn tool(&self) -> &'static str {
        if self.name == MCP_PROXY { "x/echo" } else { "echo" }
    }

    /// The path of its endpoint, if it is not `/mcp`.
    pub(super) fn path(&self) -> &'static str {
        if self.name == MCP_PROXY { "/" } else { "" }
    }

    /// The command that starts it. Writes its configuration first, if it needs one.
    pub(super) fn command(
        &self,
        lane: &Lane,
        site: &GatewayAddresses<'_>,
    ) -> Result<(PathBuf, Vec<String>), String> {
        let program = |name: &str| (PathBuf::from(name), self.program.display().to_string());
        let front = site.front.to_string();
        let port = site.front.port().to_string();
        let command = site.command;
        let url = site.url.to_owned();
        let (program, arguments) = match self.name {
            BARE => {
                let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
                (self.program.clone(), vec![front, address.to_owned()])
            }
            CREOLE => {
                let file = site.write("creole.toml", &creole_configuration(lane, site))?;
                let mut arguments = vec!["serve".to_owned(), file];
                if lane.front == LaneProtocol::Http {
                    arguments.extend(["--http".to_owned(), front]);
                }
                (self.program.clone(), arguments)
            }
            MCP_PROXY => {
                let file = site.write("mcp-proxy.toml", &crate_configuration(lane, site))?;
                (self.program.clone(), vec!["--config".to_owned(), file])
            }
            SUPERGATEWAY => {
                let (node, script) = program("node");
                let words = ["--outputTransport", "streamableHttp", "--stateful", "--logLevel"];
                let mut arguments = vec![script, "--stdio".to_owned(), command.join(" ")];
                arguments.extend(words.map(str::to_owned));
                arguments.extend(["none".to_owned(), "--port".to_owned(), port]);
                (node, arguments)
            }
            MCP_PROXY_NPM => {
                let (node, script) = program("node");
                let words = ["--server", "stream", "--host", "127.0.0.1", "--port", &port];
                let mut arguments = vec![script];
                arguments.extend(words.map(str::to_owned));
                let era = ["--upstreamProtocol", lane.server.name(), "--"].map(str::to_owned);
                (node, [&arguments, &era[..], command].concat())
            }
            MCP_PROXY_PYTHON => {
                let words = ["--log-level", "ERROR", "--port", &port, "--"];
                (self.program.clone(), [&words.map(str::to_owned), command].concat())
            }
            FASTMCP => {
                let source = fastmcp_source(lane, site)?;
                let words = ["run", &source, "--transport", "http", "--port", &port];
                let mut arguments = words.map(str::to_owned).to_vec();
                arguments.extend(["--no-banner", "--log-level", "ERROR"].map(str::to_owned));
                (self.program.clone(), arguments)
            }
            MCP_REMOTE => {
                let (node, script) = program("node");
                let words = [&url, "--allow-http", "--transport", "http-only", "--silent"];
                let mut arguments = vec![script];
                arguments.extend(words.map(str::to_owned));
                if lane.server == Era::Modern {
                    arguments.extend(["--protocol", "auto"].map(str::to_owned));
                }
                (node, arguments)
            }
            // The server itself.
            _ => (self.program.clone(), command[1..].to_vec()),
        };
        Ok((program, arguments))
    }
}

impl GatewayAddresses<'_> {
    fn write(&self, name: &str, text: &str) -> Result<String, String> {
        let path = self.folder.join(name);
        fs::write(&path, text)
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path.display().to_string())
    }
}

fn creole_configuration(lane: &Lane, site: &GatewayAddresses<'_>) -> String {
    let location = match lane.behind {
        LaneProtocol::Http => format!("url = \"{}\"", site.url),
        LaneProtocol::Stdio => format!("command = {:?}", site.command),
    };
    let era = match lane.server {
        Era::Legacy => "handshake",
        Era::Modern => "stateless",
    };
    format!(
        "[server]\nname = \"bench\"\n\n[upstreams.x]\n{location}\nera = \"{era}\"\n\
         affinity = \"shared\"\nprefix = \"\"\n"
    )
}

/// The configuration of the upstream, which supports only the era of the lane, so that a gateway has no choice.
pub(super) fn server_configuration(lane: &Lane) -> String {
    let missing = match lane.server {
        Era::Legacy => "stateless",
        Era::Modern => "handshake",
    };
    format!(
        "[server]\nname = \"bench\"\npacks = [\"hello\", \"echo\", \"calculate\", \"tasks\", \
         \"guide\"]\n\n[server.dialect]\nextends = \"spec\"\n{missing} = false\n"
    )
}

fn crate_configuration(lane: &Lane, site: &GatewayAddresses<'_>) -> String {
    let (host, port) = (site.front.ip(), site.front.port());
    let location = match lane.behind {
        LaneProtocol::Http => format!("transport = \"http\"\nurl = \"{}\"", site.url),
        LaneProtocol::Stdio => {
            let (program, arguments) = (&site.command[0], &site.command[1..]);
            format!("transport = \"stdio\"\ncommand = {program:?}\nargs = {arguments:?}")
        }
    };
    format!(
        "[proxy]\nname = \"bench\"\n\n[proxy.listen]\nhost = \"{host}\"\nport = {port}\n\n\
         [[backends]]\nname = \"x\"\n{location}\n"
    )
}

/// The source that FastMCP runs: by default it uses the era of its client with the upstream, so across eras it needs a
/// program of two lines.
fn fastmcp_source(lane: &Lane, site: &GatewayAddresses<'_>) -> Result<String, String> {
    let (program, arguments) = (&site.command[0], &site.command[1..]);
    let servers =
        format!(r#"{{"mcpServers":{{"x":{{"command":{program:?},"args":{arguments:?}}}}}}}"#);
    let crossing = |target: &str| {
        let import = "from fastmcp.server import create_proxy";
        let text = format!("{import}\nmcp = create_proxy({target}, mode=\"auto\")\n");
        site.write("proxy.py", &text)
    };
    match (lane.is_same_era(), lane.behind) {
        (true, LaneProtocol::Http) => Ok(site.url.to_owned()),
        (true, LaneProtocol::Stdio) => site.write("fastmcp.json", &servers),
        (false, LaneProtocol::Http) => crossing(&format!("{:?}", site.url)),
        (false, LaneProtocol::Stdio) => crossing(&servers),
    }
}

const PEERS: [(&str, Package); 6] = [
    (
        MCP_PROXY,
        Package {
            registry: PackageRegistry::Crates,
            name: "mcp-proxy",
            version: "0.6.0",
            folder: "mcp-proxy",
            program: "bin/mcp-proxy",
        },
    ),
    (
        SUPERGATEWAY,
        Package {
            registry: PackageRegistry::Npm,
            name: "supergateway",
            version: "4.0.0",
            folder: "supergateway",
            program: "node_modules/supergateway/dist/index.js",
        },
    ),
    (
        MCP_PROXY_NPM,
        Package {
            registry: PackageRegistry::Npm,
            name: "mcp-proxy",
            version: "6.7.19",
            folder: "mcp-proxy-npm",
            program: "node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs",
        },
    ),
    (
        MCP_PROXY_PYTHON,
        Package {
            registry: PackageRegistry::Pypi,
            name: "mcp-proxy",
            version: "0.13.0",
            folder: "mcp-proxy-python",
            program: "bin/mcp-proxy",
        },
    ),
    (
        FASTMCP,
        Package {
            registry: PackageRegistry::Pypi,
            name: "fastmcp",
            version: "4.1.0",
            folder: "fastmcp",
            program: "bin/fastmcp",
        },
    ),
    (
        MCP_REMOTE,
        Package {
            registry: PackageRegistry::Npm,
            name: "mcp-remote",
            version: "0.15.1",
            folder: "mcp-remote",
            program: "node_modules/mcp-remote/dist/proxy.js",
        },
    ),
];

/// Builds and installs everything that is compared, and reports failures.
pub(super) fn build(
    folder: &BuildFolder,
    creole: Option<&Path>,
) -> Result<(Vec<Contender>, Vec<String>), String> {
    let relay = folder.build_bench("bare-relay", "bare-relay")?;
    let creole = folder.creole(creole)?;
    let mut contenders = vec![
        Contender { name: DIRECT, program: creole.clone() },
        Contender { name: BARE, program: relay },
    ];
    let mut missing = Vec::new();
    for (name, package) in &PEERS {
        match package.install(folder) {
            Ok(program) => contenders.push(Contender { name, program }),
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    contenders.push(Contender { name: CREOLE, program: creole });
    Ok((contenders, missing))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::super::lanes::LANES;
    use super::{
        BARE, CREOLE, Contender, DIRECT, FASTMCP, GatewayAddresses, MCP_PROXY, MCP_PROXY_NPM,
        MCP_PROXY_PYTHON, MCP_REMOTE, SUPERGATEWAY, creole_configuration, server_configuration,
    };

    #[test]
    fn creole_is_measured_on_every_route_and_a_peer_on_its_own() {
        let taken = |name| {
            let contender = Contender { name, program: PathBuf::from("p") };
            LANES.iter().filter(|lane| contender.takes(lane)).count()
        };
        assert_eq!(taken(CREOLE), LANES.len());
        assert_eq!((taken(DIRECT), taken(BARE)), (6, 2));
        assert_eq!((taken(FASTMCP), taken(MCP_PROXY_NPM), taken(SUPERGATEWAY)), (8, 4, 2));
        assert_eq!((taken(MCP_REMOTE), taken(MCP_PROXY), taken(MCP_PROXY_PYTHON)), (2, 2, 1));
    }

    #[test]
    fn the_era_of_the_server_is_configured() {
        let site = GatewayAddresses {
            front: ([127, 0, 0, 1], 1).into(),
            url: "http://127.0.0.1:2/mcp",
            command: &["creole".to_owned(), "serve".to_owned()],
            folder: Path::new("."),
        };
        let across = LANES.iter().find(|lane| !lane.is_same_era()).unwrap();
        let text = creole_configuration(across, &site);
        assert!(text.contains("era = \"stateless\"") && text.contains("prefix = \"\""));
        assert!(server_configuration(across).contains("\nhandshake = false\n"));
    }
}
