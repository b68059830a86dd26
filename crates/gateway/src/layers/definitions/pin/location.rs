//! Where pins are stored, and what operators see and decide there.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use creole::state::State;
use tokio::task::spawn_blocking;

use crate::layers::definitions::pin::pinned::{
    PinDecision, PinDecisionOutcome, PinView, Pins, approve, decide, views,
};
use crate::layers::definitions::pin::{file, stored_pins};

/// A place with pinned tools.
#[derive(Clone, Debug)]
pub enum PinLocation {
    /// A file with the tools of several servers.
    File(PathBuf),
    /// A state that replicas share.
    State {
        /// The state.
        state: State,
        /// The server whose tools these are.
        server: String,
    },
}

impl fmt::Display for PinLocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "the file `{}`", path.display()),
            Self::State { server, .. } => write!(formatter, "the state, of `{server}`"),
        }
    }
}

impl PinLocation {
    /// Its pinned tools.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn pins(&self) -> io::Result<Vec<PinView>> {
        match self {
            Self::File(path) => {
                let servers = blocking(path, file::read).await?.servers.into_iter();
                Ok(servers.flat_map(|(server, pins)| views(&server, pins)).collect())
            }
            Self::State { state, server } => {
                let (pins, _) = stored_pins::read(state, server).await?;
                Ok(views(server, pins.unwrap_or_default()).collect())
            }
        }
    }

    /// Approves the current definition of one tool or all tools of a server. Returns the tools that were withheld. A
    /// running server notices within seconds, or with the next call of the tool.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub async fn approve(&self, server: &str, tool: Option<&str>) -> io::Result<Vec<String>> {
        let tool = tool.map(str::to_owned);
        self.change(server, move |pins| approve(pins, tool.as_deref())).await
    }

    /// Records a decision about the definition with this digest. A running server notices within seconds.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub async fn decide(
        &self,
        (server, tool): (&str, &str),
        sha256: &str,
        decision: PinDecision,
    ) -> io::Result<PinDecisionOutcome> {
        let (tool, sha256) = (tool.to_owned(), sha256.to_owned());
        self.change(server, move |pins| decide(pins, &tool, &sha256, decision)).await
    }

    /// Changes the pins of a server; `change` runs again if somebody else was faster.
    async fn change<T: Send + 'static>(
        &self,
        server: &str,
        change: impl Fn(&mut Pins) -> T + Send + 'static,
    ) -> io::Result<T> {
        match self {
            Self::File(path) => {
                let server = server.to_owned();
                let update = move |path: &Path| {
                    file::update(path, |all| match all.servers.get_mut(&server) {
                        Some(pins) => change(pins),
                        None => change(&mut Pins::new()),
                    })
                };
                blocking(path, update).await
            }
            Self::State { state, server: own } if own == server => {
                stored_pins::update(state, server, change).await
            }
            Self::State { .. } => Ok(change(&mut Pins::new())),
        }
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let path = path.to_owned();
    spawn_blocking(move || work(&path)).await.map_err(io::Error::other)?
}
