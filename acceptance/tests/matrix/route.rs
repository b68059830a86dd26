//! The routes from a client through Creole to a server.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use creole_acceptance::http::ListeningServer;
use creole_acceptance::peers::{Release, UpstreamServer, Web};
use creole_acceptance::stage::stdio::binary;
use serde_json::Value;
use tempfile::TempDir;

use super::client::Client;
use super::run_result;

/// The transport from the client to Creole, and from Creole to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Route {
    /// Standard streams on both sides: `creole serve -- COMMAND`.
    Stdio,
    /// HTTP on both sides: `creole serve --http` with the server's URL in the configuration.
    Http,
    /// Standard streams to HTTP: `creole connect URL`.
    Connect,
    /// HTTP to standard streams: `creole serve --http -- COMMAND`.
    Front,
    /// HTTP+SSE to Streamable HTTP: clients at Creole's `/sse`.
    OldClient,
    /// Streamable HTTP to HTTP+SSE: the URL of the server's stream is in the configuration.
    OldServer,
    /// HTTP+SSE on both sides.
    Old,
    /// HTTP on both sides, with the further servers that support it and one client of each era.
    FurtherHttp,
    /// Standard streams on both sides, with further servers and one client of each era.
    Further,
}

impl Route {
    pub(super) const ALL: [Self; 9] = [
        Self::Stdio,
        Self::Http,
        Self::Connect,
        Self::Front,
        Self::OldClient,
        Self::OldServer,
        Self::Old,
        Self::FurtherHttp,
        Self::Further,
    ];

    /// Whether this server is tested on this route: where the transports differ, one server of each era is enough.
    pub(super) fn uses_server(self, server: UpstreamServer) -> bool {
        let is_further = UpstreamServer::FURTHER.contains(&server);
        match self {
            Self::Further => is_further,
            Self::FurtherHttp => server == UpstreamServer::Everything,
            Self::OldServer | Self::Old => UpstreamServer::SSE.contains(&server),
            _ if is_further => false,
            Self::Stdio => true,
            // Streamable HTTP was introduced after this release.
            Self::Http => server != UpstreamServer::OldTypeScript(Release::November2024),
            Self::Connect | Self::Front | Self::OldClient => {
                matches!(server, UpstreamServer::TypeScriptV1 | UpstreamServer::TypeScriptV2)
            }
        }
    }

    /// Whether this client is tested on this route.
    pub(super) fn uses_client(self, client: Client) -> bool {
        match self {
            Self::Further | Self::FurtherHttp => client.represents_its_era(),
            Self::OldClient | Self::Old => client.has_sse(),
            Self::Http | Self::Front | Self::OldServer => client.has_streams(),
            Self::Stdio | Self::Connect => true,
        }
    }

    /// The client's transport to Creole, unless it is stdio.
    fn before(self) -> Option<Web> {
        match self {
            Self::Http | Self::Front | Self::OldServer | Self::FurtherHttp => Some(Web::Streamable),
            Self::OldClient | Self::Old => Some(Web::Sse),
            Self::Stdio | Self::Connect | Self::Further => None,
        }
    }

    /// Creole's transport to the server, unless it is stdio.
    fn behind(self) -> Option<Web> {
        match self {
            Self::Http | Self::Connect | Self::OldClient | Self::FurtherHttp => {
                Some(Web::Streamable)
            }
            Self::OldServer | Self::Old => Some(Web::Sse),
            Self::Stdio | Self::Front | Self::Further => None,
        }
    }

    /// The title of the route.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Stdio => "stdio to stdio: `creole serve -- COMMAND`",
            Self::Http => "HTTP to HTTP: `creole serve --http`, `[upstreams.x] url = …`",
            Self::Connect => "stdio to HTTP: `creole connect URL`",
            Self::Front => "HTTP to stdio: `creole serve --http … -- COMMAND`",
            Self::OldClient => "HTTP+SSE to HTTP: clients at `/sse`",
            Self::OldServer => "HTTP to HTTP+SSE: `[upstreams.x] url = …/sse`",
            Self::Old => "HTTP+SSE to HTTP+SSE",
            Self::FurtherHttp => "HTTP to HTTP: further servers",
            Self::Further => "stdio to stdio: further servers",
        }
    }
}

/// The endpoint that a client gets.
enum ClientEndpoint {
    Command(Vec<OsString>),
    Gateway(ListeningServer, Web),
}

/// A server, and Creole in front of it.
pub(super) struct RouteSetup {
    end: ClientEndpoint,
    _server: Option<ListeningServer>,
    folder: TempDir,
}

impl RouteSetup {
    pub(super) fn new(route: Route, server: UpstreamServer) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let listens = |web| Ok::<_, String>((listening(server, web)?, web));
        let behind = route.behind().map(listens).transpose()?;
        let url = behind.as_ref().map(|(server, web)| url_of(server, *web));
        let words = server.command().map_err(|missing| missing.to_string())?;
        let end = match (route.before(), url) {
            (None, None) => {
                let before = ["serve".into(), "--".into()].into_iter().chain(words).collect();
                ClientEndpoint::Command(creole(&folder, before)?)
            }
            (None, Some(url)) => {
                ClientEndpoint::Command(creole(&folder, vec!["connect".into(), url.into()])?)
            }
            (Some(web), None) => {
                let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
                ClientEndpoint::Gateway(
                    ListeningServer::start(&[&["--"], &words[..]].concat())?,
                    web,
                )
            }
            (Some(web), Some(url)) => {
                let file = folder.path().join("creole.toml");
                let text = format!(
                    "[server]\npacks = []\n[upstreams.behind]\nurl = \"{url}\"\nprefix = \"\"\n"
                );
                fs::write(&file, text).map_err(|error| error.to_string())?;
                let file = file.to_string_lossy();
                ClientEndpoint::Gateway(ListeningServer::start(&[&*file])?, web)
            }
        };
        Ok(Self { end, _server: behind.map(|(server, _)| server), folder })
    }

    /// Makes a client perform all steps that it supports.
    pub(super) fn run(&self, client: Client, server: UpstreamServer) -> Result<Value, String> {
        let name = format!("{}-{}", client.name(), client.revision());
        let file = self.folder.path().join(name).display().to_string();
        let steps = run_result::steps(client, server, &file);
        match &self.end {
            ClientEndpoint::Command(words) => client.run(&steps, words),
            ClientEndpoint::Gateway(gateway, web) => {
                let report = client.run_at(&steps, &url_of(gateway, *web));
                report.map_err(|error| format!("{error}\n{}", gateway.log()))
            }
        }
    }
}

/// Starts a server on its own port.
fn listening(server: UpstreamServer, web: Web) -> Result<ListeningServer, String> {
    let words = server.listening(web).map_err(|missing| missing.to_string())?;
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    ListeningServer::other(command)
}

/// The URL of a listening server.
fn url_of(listening: &ListeningServer, web: Web) -> String {
    format!("http://{}{}", listening.address(), web.path())
}

/// The command that runs Creole with these arguments and this data directory. `env` sets it, because some SDKs do not
/// pass their environment on.
pub(super) fn creole(home: &TempDir, words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let home = format!("CREOLE_DATA_DIR={}", home.path().display());
    let before = ["env".into(), home.into(), binary()?.into()];
    Ok(before.into_iter().chain(words).collect())
}
