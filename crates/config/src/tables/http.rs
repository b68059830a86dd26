//! The tables `[http]` and `[auth]`: the HTTP listener and the authentication of its clients.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::syntax::value::{Entries, Ranged, Spanned};
use crate::tables::auth_oauth::{AuthOAuthTable, ScopeTable};
use crate::tables::issuers::IssuerTable;

/// The HTTP listener. With this table, the server uses HTTP instead of stdin and stdout, unless the command line says
/// otherwise.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpTable {
    /// The address and port to listen on. Port 0 selects a free port. Default: `127.0.0.1:8080`.
    pub listen: Option<Spanned<String>>,
    /// The scheme, host and port under which clients reach this server, such as `https://mcp.example.com`. Access tokens
    /// are issued for this URL and the path of a server. It needs `https`, except for this machine. Its host is accepted
    /// as a value of the `Host` header. Default: the `Host` header of each request.
    pub public_url: Option<Spanned<String>>,
    /// The path of the MCP endpoint. Default: `/mcp`.
    pub path: Option<Spanned<String>>,
    /// The path at which clients of 2024-11-05 open their stream. An empty string disables it. Default: `/sse`.
    pub legacy_sse: Option<Spanned<String>>,
    /// Accepted values of the `Host` header, in addition to those of this machine. A value without a port accepts any
    /// port.
    pub hosts: Option<Vec<Spanned<String>>>,
    /// Web origins whose pages may call the server, such as `https://app.example.com`, in addition to the server's own.
    /// An origin with another port is a different origin.
    pub origins: Option<Vec<Spanned<String>>>,
    /// Addresses and networks of trusted reverse proxies, such as `10.0.0.0/8`. The server takes the address of a
    /// client from their `Forwarded` or `X-Forwarded-For` header. Failed logins and open sessions are counted per
    /// client address.
    pub trusted_proxies: Option<Vec<Spanned<String>>>,
    /// The certificate and key for HTTPS. Without them the server uses HTTP.
    pub tls: Option<TlsTable>,
    /// Sizes, timeouts and counts.
    pub limits: Option<HttpLimitsTable>,
}

/// A certificate and its key. The files are read again when they change.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsTable {
    /// The file with the certificate in PEM format, followed by its intermediate certificates. A relative path is
    /// resolved against the folder of the configuration file.
    pub certificate: Spanned<String>,
    /// The file with the private key in PEM format. A relative path is resolved against the folder of the configuration
    /// file.
    pub key: Spanned<String>,
    /// The file with the certificates of authorities in PEM format. The server then requests a certificate from clients.
    /// A client may present none; a certificate of another authority ends the connection. An access token that is bound
    /// to a certificate (RFC 8705) is accepted only on a connection with that certificate. A relative path is resolved
    /// against the folder of the configuration file. Default: no certificate is requested.
    pub client_certificates: Option<Spanned<String>>,
}

/// Limits of the HTTP listener.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpLimitsTable {
    /// The maximum size of a request body, in bytes. Larger requests fail with HTTP 413. Default: the dialect's
    /// `max_message`.
    pub max_body: Option<Ranged<1024, 268_435_456>>,
    /// The maximum total size of buffered request bodies and upstream response bodies, in bytes. One caller may use at
    /// most three quarters of it. Requests above the limit fail with HTTP 503. Default: a quarter of the memory that is
    /// available to the process.
    pub max_buffered: Option<Ranged<1_048_576, 1_099_511_627_776>>,
    /// The maximum number of open connections. Further connections wait. Default: 12000, or one per 128 KiB of the
    /// memory that is available to the process if that is less.
    pub max_connections: Option<Ranged<1, 1_000_000>>,
    /// The maximum number of open connections of one client address. Further connections are closed. Loopback addresses
    /// and trusted proxies may use all connections. Default: half of `max_connections`.
    pub max_connections_per_address: Option<Ranged<1, 1_000_000>>,
    /// The maximum number of open sessions. At the limit, a new session of a caller with fewer sessions replaces a
    /// session of the caller with the most, unused sessions first. Default: 10000.
    pub max_sessions: Option<Ranged<1, 1_000_000>>,
    /// The time after which an unused session is deleted, in seconds. Default: 1800.
    pub session_timeout_seconds: Option<Ranged<1, 604_800>>,
    /// The maximum time of a request head or a TLS handshake, in seconds. The connection is then closed. Default: 10.
    pub header_timeout_seconds: Option<Ranged<1, 600>>,
    /// The maximum time of a request body, in seconds. The request then fails with HTTP 408. Default: 30.
    pub body_timeout_seconds: Option<Ranged<1, 3600>>,
    /// The time after which a connection without a request is closed, in seconds. Default: 60.
    pub idle_timeout_seconds: Option<Ranged<1, 3600>>,
    /// The maximum time that a client may read nothing of a pending response, in seconds. The connection is then
    /// closed. Default: 30.
    pub write_timeout_seconds: Option<Ranged<1, 3600>>,
    /// The time between the signal to end and the graceful shutdown, in seconds. Meanwhile the server accepts and serves,
    /// but `/ready` fails with HTTP 503 and no session opens, so that load balancers send new clients elsewhere.
    /// Default: 0.
    pub drain_delay_seconds: Option<Ranged<0, 60>>,
    /// The maximum time that running calls may continue during a graceful shutdown, in seconds. They are then
    /// cancelled. Default: 30.
    pub drain_timeout_seconds: Option<Ranged<1, 3600>>,
}

/// Authentication of HTTP clients. A client on stdio needs no authentication.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuthTable {
    /// The file of users and password hashes. `creole passwd` writes it. A relative path is resolved against the folder
    /// of this file.
    pub users: Option<Spanned<String>>,
    /// Bearer keys of programs.
    pub keys: Option<Spanned<Vec<KeyTable>>>,
    /// The file of bearer keys. `creole passwd --key` writes it. A relative path is resolved against the folder of this
    /// file.
    pub keys_file: Option<Spanned<String>>,
    /// The issuers whose access tokens are accepted. The key is a name of your choice, which is a part of the names of
    /// callers in logs.
    pub issuers: Option<Entries<IssuerTable>>,
    /// The requirements for access tokens of the issuers.
    pub oauth: Option<Spanned<AuthOAuthTable>>,
    /// What access tokens may use, by their scopes. The key is the scope.
    pub scopes: Option<Spanned<Entries<ScopeTable>>>,
    /// The role that a caller must have. Default: none, every authenticated caller is admitted.
    pub role: Option<Spanned<String>>,
}

/// A bearer key of a program, stored as its SHA-256.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyTable {
    /// The name that identifies the program.
    pub name: Spanned<String>,
    /// The SHA-256 of the key, as 64 hexadecimal digits. Never write the key itself.
    #[schemars(regex(pattern = r"^([0-9A-Fa-f]{64}|.*\$\{.*)$"))]
    pub sha256: Spanned<String>,
    /// The roles of the program.
    pub roles: Option<Vec<Spanned<String>>>,
    /// The time at which the key expires, such as `2027-01-31` or `2027-01-31T12:00:00Z`. Default: never.
    pub expires: Option<Spanned<String>>,
}

impl AuthTable {
    /// The names of the issuers, in the order of the file.
    pub(crate) fn issuer_labels(&self) -> Vec<String> {
        let entries = self.issuers.iter().flat_map(|Entries(entries)| entries);
        entries.map(|(label, _)| label.value.clone()).collect()
    }
}
