//! The settings of the admin listener, and the roles of its callers.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use creole::auth::Authenticator;
use creole::serve::http::Certificates;
use creole_proto::http::origin_guard::OriginGuard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a caller of the API may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Role {
    /// Sees everything but payloads and audit lines.
    #[serde(rename = "admin:read")]
    Read,
    /// Also restarts upstreams, runs operations, sees payloads and ends sessions.
    #[serde(rename = "admin:operate")]
    Operate,
    /// Also approves changed tools and searches the audit log.
    #[serde(rename = "admin:approve")]
    Approve,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Read, Self::Operate, Self::Approve];

    /// The name in files of users and keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "admin:read",
            Self::Operate => "admin:operate",
            Self::Approve => "admin:approve",
        }
    }

    /// Whether somebody with these roles may do what needs this role. Every role includes reading.
    pub fn is_among(self, roles: &[Self]) -> bool {
        roles.contains(&self) || (self == Self::Read && !roles.is_empty())
    }
}

/// Where the admin listener listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl AdminAddress {
    /// Whether only programs on this machine can connect.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

/// Whether the payloads of calls may be looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CapturePolicy {
    /// No payload is kept.
    Never,
    /// Payloads are kept while a capture runs.
    #[default]
    Ask,
    /// The payloads of all calls in the ring are kept.
    Always,
}

/// The settings of the admin listener.
#[derive(Clone)]
pub struct AdminSettings {
    /// Where it listens.
    pub listen: AdminAddress,
    /// Its users and keys. Without them, a one-time link signs in the user of the process.
    pub authenticator: Option<Authenticator>,
    /// The accepted hosts.
    pub guard: OriginGuard,
    /// The certificate, if the listener uses TLS.
    pub certificates: Option<Arc<Certificates>>,
    /// Whether the console is served.
    pub console: bool,
    /// Whether payloads may be looked at.
    pub capture: CapturePolicy,
    /// Whether metrics need no credential.
    pub metrics_open: bool,
    /// The page of a trace, with `{trace}` for its id.
    pub trace_url: Option<String>,
    /// The folder of the file with the one-time link. Without one, no link is written.
    pub link_folder: Option<PathBuf>,
}
