//! Our own binary as an upstream that supports one era only.

use std::fs;

use tempfile::TempDir;

use crate::http::ListeningServer;
use crate::stage::stdio::binary;

/// The eras that the upstream supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEra {
    /// Only the handshake era.
    Legacy,
    /// Only the stateless era.
    Modern,
}

impl ServerEra {
    fn configuration(self) -> String {
        let missing = match self {
            Self::Legacy => "stateless",
            Self::Modern => "handshake",
        };
        format!(
            "[server]\nname = \"behind\"\npacks = [\"everything\"]\n\n[server.dialect]\nextends = \
             \"spec\"\n{missing} = false\n"
        )
    }
}

/// A gateway with a port, and the preset `everything` as its upstream.
pub struct GatewaySetup {
    /// The gateway.
    pub gateway: ListeningServer,
    /// The upstream, if it has its own port.
    pub server: Option<ListeningServer>,
    folder: TempDir,
}

impl GatewaySetup {
    /// The upstream is a child process of the gateway.
    pub fn child(era: ServerEra) -> Result<Self, String> {
        let (folder, file) = configured(era)?;
        let creole = creole()?;
        let gateway = ListeningServer::start(&["--", &creole, "serve", &file])?;
        Ok(Self { gateway, server: None, folder })
    }

    /// The upstream listens on a port.
    pub fn listening(era: ServerEra) -> Result<Self, String> {
        let (folder, file) = configured(era)?;
        let server = ListeningServer::start(&[&file])?;
        let before = folder.path().join("gateway.toml").display().to_string();
        let upstream = format!("[upstreams.behind]\nurl = \"{}\"\nprefix = \"\"\n", server.url());
        let text = format!("[server]\nname = \"gateway\"\n\n{upstream}");
        fs::write(&before, text).map_err(|error| error.to_string())?;
        let gateway = ListeningServer::start(&[&before])?;
        Ok(Self { gateway, server: Some(server), folder })
    }

    /// Another instance of the same server, without a gateway.
    pub fn alone(&self) -> Result<ListeningServer, String> {
        ListeningServer::start(&[&file_in(&self.folder)])
    }
}

fn configured(era: ServerEra) -> Result<(TempDir, String), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = file_in(&folder);
    fs::write(&file, era.configuration()).map_err(|error| error.to_string())?;
    Ok((folder, file))
}

fn file_in(folder: &TempDir) -> String {
    folder.path().join("behind.toml").display().to_string()
}

fn creole() -> Result<String, String> {
    Ok(binary()?.display().to_string())
}
