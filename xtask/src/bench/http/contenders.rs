//! The compared servers, and the measures of each.

use std::path::{Path, PathBuf};

use super::super::build::BuildFolder;
use super::super::sample::Era;
use super::sample::{MANY_TOOLS, Measure, TOOLS_IN_LIST};

/// The bare server of the targets: hyper, serde_json and nothing else.
pub(super) const BARE: &str = "bare hyper";
/// rmcp without sessions, with JSON responses: its fastest configuration.
pub(super) const RMCP_JSON: &str = "rmcp 3.8, JSON";
/// rmcp as documented: sessions for legacy clients, streaming responses for all.
pub(super) const RMCP: &str = "rmcp 3.8, default";
/// tower-mcp as documented: sessions for legacy clients.
pub(super) const TOWER_MCP: &str = "tower-mcp 0.25";
/// The product, with its default preset.
pub(super) const CREOLE: &str = "creole serve --http";

/// An API key for the load generator, and its SHA-256.
pub(super) const KEY: &str = "creole_bench";
const KEY_DIGEST: &str = "538a305b7f8f0c19d0afc201a030a64d6e4bd7c8f5ac8d682e33e4cba787c91e";

/// An access token for the load generator: signed by a key that exists no more, valid until 2100.
pub(super) const TOKEN: &str = concat!(
    "eyJhbGciOiJFZERTQSIsInR5cCI6ImF0K2p3dCIsImtpZCI6ImJlbmNoIn0",
    ".eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUuY29tIiwiYXVkIjoiaHR0cHM6Ly9tY3AuZXhhbXBsZS5jb20vbWNwIiwiZXhwIjo0MTAyNDQ0ODAw",
    "LCJpYXQiOjE3MDAwMDAwMDAsInN1YiI6ImJlbmNoIiwiY2xpZW50X2lkIjoiYmVuY2gtY2xpZW50Iiwic2NvcGUiOiJtY3AifQ",
    ".swatO0HXeXGaztuq1k6UV3-D2mJQbfzoL9YHelsHKgLHDv3erSFyRUcotzP6aXDczNciMtTd80_GEFsdfReiAQ",
);

/// The key set of the token's issuer.
const TOKEN_KEYS: &str = r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"bench","alg":"EdDSA",
"use":"sig","x":"YsGNQZvde7X6xigSKGIfTyHd2Hi-4qMMRNm1625oOo0"}]}"#;

/// A server and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<String>,
}

impl Server {
    fn new(program: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { program: program.to_owned(), arguments }
    }

    /// The command line, for the report.
    pub(super) fn command(&self) -> String {
        format!("{} {}", self.program.display(), self.arguments.join(" "))
    }

    fn with_tools(&self, count: usize) -> Self {
        let mut with = self.clone();
        with.arguments.extend(["--tools".to_owned(), count.to_string()]);
        with
    }
}

/// A measured server.
pub(super) struct Contender {
    pub(super) name: &'static str,
    /// The server that answers calls of `echo`.
    pub(super) server: Server,
    /// The server that accepts `--tools N`, if its list is measured.
    pub(super) lister: Option<Server>,
    /// The same server with authentication by API key.
    keyed: Option<Server>,
    /// The same server with authentication by access token.
    oauth: Option<Server>,
    /// The same server with a log of every request.
    logged: Option<Server>,
    /// Whether it has streams on which clients wait.
    has_streams: bool,
    /// Whether it keeps sessions for legacy clients.
    has_sessions: bool,
}

impl Contender {
    fn new(name: &'static str, server: Server) -> Self {
        Self {
            name,
            server,
            lister: None,
            keyed: None,
            oauth: None,
            logged: None,
            has_streams: false,
            has_sessions: false,
        }
    }

    /// The server to start for this measure, or `None` if it is not measured here.
    pub(super) fn server(&self, era: Era, measure: Measure) -> Option<Server> {
        let is_ours = self.name == CREOLE;
        let is_legacy = era == Era::Legacy;
        let lister = self.lister.as_ref();
        match measure {
            Measure::OneConnection | Measure::Connections => Some(self.server.clone()),
            Measure::List => lister.map(|server| server.with_tools(TOOLS_IN_LIST)),
            Measure::FewTools if is_ours => lister.map(|server| server.with_tools(1)),
            Measure::ManyTools if is_ours => lister.map(|server| server.with_tools(MANY_TOOLS)),
            Measure::Crowded if is_ours && is_legacy => Some(self.server.clone()),
            Measure::Keyed => self.keyed.clone(),
            Measure::Token => self.oauth.clone(),
            Measure::Logged => self.logged.clone(),
            Measure::Streams if self.has_streams => Some(self.server.clone()),
            Measure::Sessions if self.has_sessions && is_legacy => Some(self.server.clone()),
            _ => None,
        }
    }
}

/// Builds everything that is compared. The bare responder comes first, creole last.
pub(super) fn build(folder: &BuildFolder, creole: Option<&Path>) -> Result<Vec<Contender>, String> {
    let bare = Server::new(&folder.build_bench("bare-http", "bare-http")?, &[]);
    let rmcp = folder.build_bench("rmcp-http", "rmcp-http")?;
    let rmcp_json = Server::new(&rmcp, &["json"]);
    let tower = Server::new(&folder.build_bench("tower-mcp-http", "tower-mcp-http")?, &[]);
    let many = Server::new(&folder.build_ours("creole-many-tools")?, &[]);
    let creole = folder.creole(creole)?;
    let configured = |name: &str, more: &str| -> Result<Server, String> {
        let file = folder.preset_with("default", name, more)?;
        let file = file.to_string_lossy();
        Ok(Server::new(&creole, &["serve", &*file, "--http", "127.0.0.1:0"]))
    };
    let key = format!("[[auth.keys]]\nname = \"bench\"\nsha256 = \"{KEY_DIGEST}\"\n");
    let keyed = configured("keyed", &key)?;
    let oauth = configured("oauth", &issuer(folder)?)?;
    let logged = configured("logged", "[log]\nlevel = \"info\"\nformat = \"json\"\n")?;
    let creole = Server::new(&creole, &["serve", "--http", "127.0.0.1:0"]);
    Ok(vec![
        Contender { lister: Some(bare.clone()), has_streams: true, ..Contender::new(BARE, bare) },
        Contender { lister: Some(rmcp_json.clone()), ..Contender::new(RMCP_JSON, rmcp_json) },
        Contender {
            has_streams: true,
            has_sessions: true,
            ..Contender::new(RMCP, Server::new(&rmcp, &[]))
        },
        Contender {
            lister: Some(tower.clone()),
            has_streams: true,
            has_sessions: true,
            ..Contender::new(TOWER_MCP, tower)
        },
        Contender {
            lister: Some(many),
            keyed: Some(keyed),
            oauth: Some(oauth),
            logged: Some(logged),
            has_streams: true,
            has_sessions: true,
            ..Contender::new(CREOLE, creole)
        },
    ])
}

/// The configuration of the token's issuer, with its key set in a file.
fn issuer(folder: &BuildFolder) -> Result<String, String> {
    let keys = folder.write("bench-keys.json", TOKEN_KEYS)?;
    Ok(format!(
        "[auth.issuers.bench]\nissuer = \"https://id.example.com\"\n\
         audiences = [\"https://mcp.example.com/mcp\"]\njwks_file = \"{}\"\n",
        keys.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::super::sample::Era;
    use super::super::sample::Measure;
    use super::{CREOLE, Contender, RMCP_JSON, Server};

    #[test]
    fn a_server_is_measured_with_its_own_features() {
        let server = Server::new(Path::new("a"), &["json"]);
        let peer = Contender { lister: Some(server.clone()), ..Contender::new(RMCP_JSON, server) };
        let arguments = |measure| peer.server(Era::Modern, measure).map(|it| it.arguments);
        assert_eq!(arguments(Measure::Connections).unwrap(), ["json"]);
        assert_eq!(arguments(Measure::List).unwrap(), ["json", "--tools", "1000"]);
        assert_eq!(arguments(Measure::Streams), None);
        assert_eq!(arguments(Measure::ManyTools), None);
    }

    #[test]
    fn sessions_are_of_the_legacy_era() {
        let ours = Contender {
            has_sessions: true,
            ..Contender::new(CREOLE, Server::new(Path::new("a"), &[]))
        };
        assert!(ours.server(Era::Legacy, Measure::Sessions).is_some());
        assert!(ours.server(Era::Modern, Measure::Sessions).is_none());
        assert!(ours.server(Era::Modern, Measure::Crowded).is_none());
    }
}
