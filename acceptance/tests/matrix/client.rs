//! The clients of the matrix: their names, their revisions, and the features that they cannot exercise.

use std::ffi::OsString;

use creole_acceptance::peers;
use creole_acceptance::peers::{Mode, Peer, Release, Steps};
use serde_json::Value;

/// A client of the matrix: an SDK, in one of its modes.
#[derive(Clone, Copy)]
pub(super) struct Client(Peer, Mode);

/// The release without Streamable HTTP.
const OLDEST: Peer = Peer::OldTypeScript(Release::November2024);

/// The clients, newest first.
pub(super) fn all() -> Vec<Client> {
    use Peer::{FastMcp, OldTypeScript, PythonV1, PythonV2, Rmcp, TypeScriptV1, TypeScriptV2};
    let modern = [TypeScriptV2, PythonV2, FastMcp, Rmcp].map(|peer| Client(peer, Mode::Modern));
    let old = [TypeScriptV1, PythonV1].into_iter().chain(Release::ALL.map(OldTypeScript));
    modern.into_iter().chain(old.map(|peer| Client(peer, Mode::Legacy))).collect()
}

impl Client {
    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        self.0.name()
    }

    /// The revision that it must negotiate with Creole.
    pub(super) fn revision(self) -> &'static str {
        match self {
            Self(Peer::OldTypeScript(release), _) => release.revision(),
            Self(_, Mode::Modern) => "2026-07-28",
            Self(..) => "2025-11-25",
        }
    }

    /// Whether it represents its era where one client per era suffices.
    pub(super) fn represents_its_era(self) -> bool {
        matches!(self, Self(Peer::TypeScriptV2, Mode::Modern) | Self(Peer::PythonV1, Mode::Legacy))
    }

    /// Whether it supports Streamable HTTP.
    pub(super) fn has_streams(self) -> bool {
        self.0 != OLDEST
    }

    /// Whether it can be configured to use the transport of 2024-11-05.
    pub(super) fn has_sse(self) -> bool {
        [Peer::TypeScriptV1, Peer::PythonV1, OLDEST].contains(&self.0)
    }

    /// Whether it can cancel a call.
    pub(super) fn cancels(self) -> bool {
        self.0 != Peer::Rmcp
    }

    /// Whether it receives list change notifications: FastMCP cannot subscribe.
    pub(super) fn receives_list_changes(self) -> bool {
        !matches!(self, Self(Peer::FastMcp, Mode::Modern))
    }

    /// Whether it is installed. If not, this is reported on stderr, and with `CI=true` the test fails.
    pub(super) fn is_installed(self) -> bool {
        peers::is_installed(self.0)
    }

    /// Performs the steps with the server that a command starts.
    pub(super) fn run(self, steps: &Steps, command: &[OsString]) -> Result<Value, String> {
        peers::run(self.0, self.1, steps, command)
    }

    /// Performs the steps with the server at this URL.
    pub(super) fn run_at(self, steps: &Steps, url: &str) -> Result<Value, String> {
        peers::run_at(self.0, self.1, steps, url)
    }
}
