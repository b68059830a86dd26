//! The ways from a client through Creole to a server.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use creole_acceptance::http::Listening;
use creole_acceptance::peers::Behind;
use creole_acceptance::stage::stdio::binary;
use serde_json::Value;
use tempfile::TempDir;

use super::client::Client;
use super::seen;

/// How the client reaches Creole, and Creole the server.
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
    /// Standard streams on both sides, with further servers and one client of each era.
    Further,
}

impl Route {
    pub(super) const ALL: [Self; 5] =
        [Self::Stdio, Self::Http, Self::Connect, Self::Front, Self::Further];

    /// Whether this server is put behind on this way: where the transports differ, one server of each era is enough.
    pub(super) fn is_taken(self, server: Behind) -> bool {
        let is_further = Behind::FURTHER.contains(&server);
        match self {
            Self::Further => is_further,
            _ if is_further => false,
            Self::Stdio | Self::Http => true,
            Self::Connect | Self::Front => {
                matches!(server, Behind::TypeScriptV1 | Behind::TypeScriptV2)
            }
        }
    }

    /// Whether this client takes the way.
    pub(super) fn is_taken_by(self, client: Client) -> bool {
        self != Self::Further || client.is_one_of_its_era()
    }

    /// The way in words.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Stdio => "stdio to stdio: `creole serve -- COMMAND`",
            Self::Http => "HTTP to HTTP: `creole serve --http`, `[upstreams.x] url = …`",
            Self::Connect => "stdio to HTTP: `creole connect URL`",
            Self::Front => "HTTP to stdio: `creole serve --http … -- COMMAND`",
            Self::Further => "stdio to stdio: further servers",
        }
    }
}

/// What a client is given to talk to.
enum End {
    Command(Vec<OsString>),
    Gateway(Listening),
}

/// A server, and Creole before it.
pub(super) struct Staged {
    end: End,
    _server: Option<Listening>,
    folder: TempDir,
}

impl Staged {
    pub(super) fn new(route: Route, server: Behind) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let words = server.command().map_err(|missing| missing.to_string())?;
        let behind = match route {
            Route::Http | Route::Connect => Some(listening(&words)?),
            Route::Stdio | Route::Front | Route::Further => None,
        };
        let url = behind.as_ref().map(Listening::url).unwrap_or_default();
        let end = match route {
            Route::Stdio | Route::Further => {
                let before = ["serve".into(), "--".into()].into_iter().chain(words).collect();
                End::Command(creole(&folder, before)?)
            }
            Route::Connect => End::Command(creole(&folder, vec!["connect".into(), url.into()])?),
            Route::Front => {
                let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
                End::Gateway(Listening::start(&[&["--"], &words[..]].concat())?)
            }
            Route::Http => {
                let file = folder.path().join("creole.toml");
                let text = format!(
                    "[server]\npacks = []\n[upstreams.behind]\nurl = \"{url}\"\nprefix = \"\"\n"
                );
                fs::write(&file, text).map_err(|error| error.to_string())?;
                let file = file.to_string_lossy();
                End::Gateway(Listening::start(&[&*file])?)
            }
        };
        Ok(Self { end, _server: behind, folder })
    }

    /// Has a client do all that it can.
    pub(super) fn talk(&self, client: Client, server: Behind) -> Result<Value, String> {
        let name = format!("{}-{}", client.name(), client.revision());
        let file = self.folder.path().join(name).display().to_string();
        let steps = seen::steps(client, server, &file);
        match &self.end {
            End::Command(words) => client.run(&steps, words),
            End::Gateway(gateway) => {
                let came = client.run_at(&steps, &gateway.url());
                came.map_err(|error| format!("{error}\n{}", gateway.log()))
            }
        }
    }
}

/// A server that listens on a port of its own.
fn listening(words: &[OsString]) -> Result<Listening, String> {
    let (program, arguments) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(arguments).arg("--http");
    Listening::other(command)
}

/// The command that runs Creole with these words, at home in a folder; `env` sets it, because some SDKs do not hand
/// their environment on.
fn creole(home: &TempDir, words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let home = format!("CREOLE_DATA_DIR={}", home.path().display());
    let before = ["env".into(), home.into(), binary()?.into()];
    Ok(before.into_iter().chain(words).collect())
}
