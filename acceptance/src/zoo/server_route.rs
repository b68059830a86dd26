//! The route to a server: direct, or through Creole.

use std::ffi::OsString;
use std::process::Command;

use super::Published;
use super::client::{ZooClient, ZooEra};
use super::wire::{ClientTransport, Http};
use crate::http::ListeningServer;
use crate::process_under_test::serve;
use crate::stage::stdio::{StdioChild, binary};

/// A route from the client to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRoute {
    /// The client starts the server.
    Direct,
    /// The client starts `creole connect -- SERVER`.
    Connect,
    /// The client uses HTTP with `creole serve --http -- SERVER`.
    Serve,
}

impl ServerRoute {
    /// Starts the server for one run in a new folder. The value beside the client has to live as long as the client.
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

/// The arguments that pass environment variables on to the program.
fn handed_on(environment: &[(&str, String)]) -> Vec<OsString> {
    let words =
        environment.iter().map(|(name, value)| [String::from("--env"), format!("{name}={value}")]);
    words.flatten().map(OsString::from).collect()
}
