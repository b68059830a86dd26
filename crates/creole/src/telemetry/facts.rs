//! What the telemetry knows of a request beside the call that it makes: where it comes from, and how.

use std::net::IpAddr;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::telemetry::modes::Modes;
use crate::telemetry::trace::TraceHeaders;

/// The transport of a client or an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Standard input and output, or another pair of streams of lines.
    #[default]
    Pipe,
    /// HTTP.
    Http {
        /// The version, such as `1.1` or `2`.
        version: &'static str,
    },
}

/// Where a call comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Via {
    /// A client of the protocol.
    #[default]
    Mcp,
    /// The console.
    Console,
    /// The REST interface.
    Rest,
    /// Code that a tool runs.
    RunCode,
    /// The command line.
    Cli,
    /// Nobody called: the gateway works for itself, such as when it fetches lists or starts an upstream.
    Gateway,
    /// Another replica, at which the client returned for its call.
    Replica,
}

impl Via {
    /// The word for the audit log and the console.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Console => "console",
            Self::Rest => "rest",
            Self::RunCode => "run_code",
            Self::Cli => "cli",
            Self::Gateway => "gateway",
            Self::Replica => "replica",
        }
    }

    /// Whether no client called this process: the gateway works for itself, or for a call of which another replica has the
    /// record.
    pub fn is_own_work(self) -> bool {
        matches!(self, Self::Gateway | Self::Replica)
    }
}

/// What the telemetry knows of a request beside the call that it makes. It is collected only if something is on.
#[derive(Clone, Debug, Default)]
pub struct RequestFacts {
    /// The method on the wire, where it differs from that of the operation.
    pub method: Option<&'static str>,
    /// The client's id of the request, as JSON.
    pub request_id: Option<Arc<str>>,
    /// The client's transport.
    pub transport: Transport,
    /// The client's address.
    pub remote: Option<IpAddr>,
    /// The start of the SHA-256 digest of the session's id.
    pub session: Option<[u8; 4]>,
    /// Where the call comes from.
    pub via: Via,
    /// The trace context in the headers of the request.
    pub trace_headers: Option<Arc<TraceHeaders>>,
    /// The message, if a reader may want messages.
    pub frame: Option<Arc<str>>,
}

impl RequestFacts {
    /// The start of the SHA-256 digest of a session's id, which identifies the session and cannot be used as the id.
    pub fn session_digest(id: &str) -> [u8; 4] {
        let digest = Sha256::digest(id.as_bytes());
        [digest[0], digest[1], digest[2], digest[3]]
    }
}

/// The source of the facts of a request: its transport.
pub(crate) trait RequestSource {
    /// The facts that these modes need.
    fn facts(&self, modes: Modes) -> RequestFacts;
}
