//! The table `[http]`: how the server is reached over HTTP.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Ranged, Spanned};

/// How the server is reached over HTTP. Where this table stands, the server listens instead of speaking
/// on stdin and stdout, unless the command line says otherwise.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTable {
    /// The address and port to listen on; port 0 is any that is free. Default: `127.0.0.1:8080`.
    pub listen: Option<Spanned<String>>,
    /// The path of the MCP endpoint. Default: `/mcp`.
    pub path: Option<Spanned<String>>,
    /// The path on which clients of 2024-11-05 open their stream; empty for none. Default: `/sse`.
    pub legacy_sse: Option<Spanned<String>>,
    /// Names and addresses by which clients call the server, besides those of the machine itself; each with
    /// any port, unless one is written.
    pub hosts: Option<Vec<Spanned<String>>>,
    /// Origins whose pages may call the server, such as `https://app.example.com`, besides its own. A page of
    /// another port is of another origin.
    pub origins: Option<Vec<Spanned<String>>>,
    /// Addresses and networks of proxies that are believed when they tell the address of a client by `Forwarded` or
    /// `X-Forwarded-For`, such as `10.0.0.0/8`. Wrong passwords and open sessions are counted by that address.
    pub trusted_proxies: Option<Vec<Spanned<String>>>,
    /// A certificate, with which the server speaks HTTPS instead of HTTP.
    pub tls: Option<TlsTable>,
    /// How much, how long and how many.
    pub limits: Option<HttpLimitsTable>,
}

/// A certificate and its key. The files are read again when they change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    /// The file with the certificate in PEM form, and behind it those that vouch for it. A relative path
    /// begins at the folder of the configuration file.
    pub certificate: Spanned<String>,
    /// The file with the private key in PEM form. A relative path begins at the folder of the configuration
    /// file.
    pub key: Spanned<String>,
}

/// How much, how long and how many.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpLimitsTable {
    /// The largest body of a request, in bytes. Default: the dialect's `max_message`.
    pub max_body: Option<Ranged<1024, 268_435_456>>,
    /// How much memory the bodies of requests, and of responses of upstreams, may take together while they are buffered,
    /// in bytes; one caller has at most three quarters of it. Default: a quarter of the memory that the process may have.
    pub max_buffered: Option<Ranged<1_048_576, 1_099_511_627_776>>,
    /// How many connections are open at once; further ones wait. Default: 12000, or one for each
    /// 128 KiB of the memory that the process may have, if that is less.
    pub max_connections: Option<Ranged<1, 1_000_000>>,
    /// How many of them one address may have; further ones are closed. The address of the machine itself and those of
    /// trusted proxies may have all. Default: half of them.
    pub max_connections_per_address: Option<Ranged<1, 1_000_000>>,
    /// How many sessions are open at once; beyond them, whoever has the most loses one to whoever has fewer, unused ones
    /// first. Default: 10000.
    pub max_sessions: Option<Ranged<1, 1_000_000>>,
    /// How long a session may be unused before it is forgotten, in seconds. Default: 1800.
    pub session_timeout_seconds: Option<Ranged<1, 604_800>>,
    /// How long the head of a request or a TLS handshake may take, in seconds. Default: 10.
    pub header_timeout_seconds: Option<Ranged<1, 600>>,
    /// How long the body of a request may take, in seconds. Default: 30.
    pub body_timeout_seconds: Option<Ranged<1, 3600>>,
    /// How long a connection may stay open without a request, in seconds. Default: 60.
    pub idle_timeout_seconds: Option<Ranged<1, 3600>>,
    /// How long a client may take nothing of what is written to it, in seconds. Default: 30.
    pub write_timeout_seconds: Option<Ranged<1, 3600>>,
    /// How long calls may go on when the server is asked to end, in seconds. Default: 30.
    pub drain_timeout_seconds: Option<Ranged<1, 3600>>,
}
