//! The clients: what they are called, what they speak, and what they cannot be made to do.

use std::ffi::OsString;

use creole_acceptance::peers::{self, Mode, Peer, Steps, own};
use serde_json::Value;

/// A client of the matrix.
#[derive(Clone, Copy)]
pub(super) enum Client {
    /// An SDK, in one of its modes.
    Peer(Peer, Mode),
    /// One of ours, which proposes this revision and no other.
    Own(&'static str),
}

/// The clients, newest first.
pub(super) fn all() -> Vec<Client> {
    use Peer::{FastMcp, PythonV1, PythonV2, Rmcp, TypeScriptV1, TypeScriptV2};
    let modern = [TypeScriptV2, PythonV2, FastMcp, Rmcp];
    let modern = modern.map(|peer| Client::Peer(peer, Mode::Modern));
    let old = [TypeScriptV1, PythonV1].map(|peer| Client::Peer(peer, Mode::Legacy));
    let own = ["2025-06-18", "2025-03-26", "2024-11-05"].map(Client::Own);
    modern.into_iter().chain(old).chain(own).collect()
}

impl Client {
    /// Its name in the table.
    pub(super) fn name(self) -> String {
        match self {
            Self::Peer(peer, _) => peer.name().to_owned(),
            Self::Own(_) => "own".to_owned(),
        }
    }

    /// The revision that it is to settle on with Creole.
    pub(super) fn revision(self) -> &'static str {
        match self {
            Self::Peer(_, Mode::Modern) => "2026-07-28",
            Self::Peer(..) => "2025-11-25",
            Self::Own(revision) => revision,
        }
    }

    /// Whether it stands for its era where not all clients are needed.
    pub(super) fn is_one_of_its_era(self) -> bool {
        matches!(
            self,
            Self::Peer(Peer::TypeScriptV2, Mode::Modern) | Self::Peer(Peer::PythonV1, Mode::Legacy)
        )
    }

    /// Whether it can cancel a call when told to.
    pub(super) fn cancels(self) -> bool {
        !matches!(self, Self::Peer(Peer::Rmcp, _))
    }

    /// Whether it can hear that a list has changed: FastMCP cannot subscribe.
    pub(super) fn hears_changes(self) -> bool {
        !matches!(self, Self::Peer(Peer::FastMcp, Mode::Modern))
    }

    /// Why it cannot be run here.
    pub(super) fn missing(self) -> Option<String> {
        let Self::Peer(peer, _) = self else { return None };
        peers::installed(peer).err().map(|missing| missing.to_string())
    }

    /// Performs steps with the server that a command starts.
    pub(super) fn run(self, steps: &Steps, command: &[OsString]) -> Result<Value, String> {
        match self {
            Self::Peer(peer, mode) => peers::run(peer, mode, steps, command),
            Self::Own(revision) => own::run(revision, steps, command),
        }
    }

    /// Performs steps with the server at this address.
    pub(super) fn run_at(self, steps: &Steps, url: &str) -> Result<Value, String> {
        match self {
            Self::Peer(peer, mode) => peers::run_at(peer, mode, steps, url),
            Self::Own(revision) => own::run_at(revision, steps, url),
        }
    }
}
