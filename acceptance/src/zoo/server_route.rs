//! Where a client finds a server: alone, or behind Creole.

use std::ffi::OsString;
use std::process::Command;

use super::Published;
use super::client::{ZooClient, ZooEra};
use super::wire::{ClientTransport, Http};
use crate::http::ListeningServer;
use crate::process_under_test::serve;
use crate::stage::stdio::{StdioChild, binary};

/// A way from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRoute {
    /// The client starts the server.
    Direct,
    /// The client starts `creole connect -- SERVER`.
    Connect,
    /// The client speaks HTTP to `creole serve --http -- SERVER`.
    Serve,
}

impl ServerRoute {
    /// Starts the server for one conversation in a fresh folder. What is returned beside the client has
    /// to live as long.
    pub fn open(
        self,
        server: &Published,
        era: ZooEra,
    ) -> Result<(ZooClient, Option<ListeningServer>), String> {
        let folder = server.folder()?;
        let command = server.command(&folder).map_err(|missing| missing.to_string())?;
        let environment = server.environment(&folder);
        let (wire, listening) = match self {
            Self::Direct => {
                let mut direct = Command::new(&command[0]);
                direct.args(&command[1..]).envs(environment).current_dir(folder.path());
                (ClientTransport::Lines(StdioChild::start(direct)?), None)
            }
            Self::Connect => {
                let mut connect = Command::new(binary()?);
                connect.arg("connect").args(handed_on(&environment)).arg("--").args(command);
                connect.current_dir(folder.path()).env("CREOLE_DATA_DIR", folder.path());
                (ClientTransport::Lines(StdioChild::start(connect)?), None)
            }
            Self::Serve => {
                let mut front = serve(folder.path(), &["--http", "127.0.0.1:0"]);
                front.args(handed_on(&environment)).arg("--").args(command);
                let listening = ListeningServer::other(front)?;
                (ClientTransport::Http(Http::new(listening.address())), Some(listening))
            }
        };
        Ok((ZooClient::new(wire, era, folder), listening))
    }
}

/// The words that hand entries of the environment on to the program.
fn handed_on(environment: &[(&str, String)]) -> Vec<OsString> {
    let words =
        environment.iter().map(|(name, value)| [String::from("--env"), format!("{name}={value}")]);
    words.flatten().map(OsString::from).collect()
}
