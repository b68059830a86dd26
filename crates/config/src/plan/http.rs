//! The plan of the HTTP listener: the resolved table `[http]`.

mod public_url;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use creole_proto::http::forwarded::{Network, TrustedProxies};
use creole_proto::http::origin_guard::OriginGuard;

use crate::plan::{count, seconds};
use crate::syntax::error::ConfigProblem;
use crate::syntax::value::{Ranged, Spanned};
use crate::tables::http::{HttpLimitsTable, HttpTable, TlsTable};

/// The default address to listen on.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);
/// The default path of the endpoint.
const DEFAULT_PATH: &str = "/mcp";
/// The default path of HTTP+SSE, the oldest transport.
const DEFAULT_LEGACY_SSE: &str = "/sse";
/// The paths of the health checks.
const RESERVED_PATHS: [&str; 2] = ["/health", "/ready"];
/// What the paths of metadata documents begin with.
const WELL_KNOWN: &str = "/.well-known/";
/// The maximum length of a path, in bytes.
const MAX_PATH: usize = 200;

/// The HTTP listener.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpPlan {
    /// The address and port to listen on.
    pub listen: SocketAddr,
    /// The scheme, host and port under which clients reach the server.
    pub public_url: Option<String>,
    /// The path of the MCP endpoint.
    pub path: String,
    /// The path at which clients of HTTP+SSE, the oldest transport, open their stream.
    pub legacy_sse: Option<String>,
    /// The proxies that are trusted to name the address of a client.
    pub proxies: TrustedProxies,
    /// The certificate, if the server uses HTTPS.
    pub tls: Option<TlsPlan>,
    /// Sizes, timeouts and counts.
    pub limits: HttpLimitsPlan,
    guard: OriginGuard,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsPlan {
    /// The file with the certificate.
    pub certificate: PathBuf,
    /// The file with the key.
    pub key: PathBuf,
    /// The file with the authorities of the certificates of clients.
    pub client_certificates: Option<PathBuf>,
}

/// Sizes, timeouts and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimitsPlan {
    /// The maximum size of a request body, in bytes.
    pub max_body: usize,
    /// The maximum total size of buffered bodies, in bytes. Default: a share of the available memory.
    pub max_buffered: Option<usize>,
    /// The maximum number of open connections.
    pub max_connections: usize,
    /// The maximum number of open connections of one address.
    pub max_connections_per_address: usize,
    /// The maximum number of open sessions.
    pub max_sessions: usize,
    /// How long a session may stay unused.
    pub session_timeout: Duration,
    /// How long the head of a request or a TLS handshake may take.
    pub header_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// How long a client may read nothing of a pending write.
    pub write_timeout: Duration,
    /// How long the server still accepts and serves before a graceful shutdown.
    pub drain_delay: Duration,
    /// How long calls may continue during a graceful shutdown.
    pub drain_timeout: Duration,
}

impl HttpPlan {
    /// The default plan, for messages of at most this many bytes.
    pub fn with_defaults(max_message: usize) -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            public_url: None,
            path: DEFAULT_PATH.to_owned(),
            legacy_sse: Some(DEFAULT_LEGACY_SSE.to_owned()),
            proxies: TrustedProxies::default(),
            tls: None,
            limits: limits(&HttpLimitsTable::default(), max_message),
            guard: OriginGuard::loopback(),
        }
    }

    /// The allowed hosts and origins: this machine, the address that is listened on, and the configured ones.
    pub fn guard(&self) -> OriginGuard {
        let mut guard = self.guard.clone();
        let address = self.listen.ip();
        if !address.is_unspecified() {
            guard.allow_address(address);
        }
        guard
    }

    /// Whether only programs on this machine can connect.
    pub fn is_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(mut self, folder: &Path) -> Self {
        self.tls = self.tls.map(|tls| tls.resolve_paths(folder));
        self
    }
}

impl TlsPlan {
    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(self, folder: &Path) -> Self {
        // Joining an absolute path gives that path.
        Self {
            certificate: folder.join(&self.certificate),
            key: folder.join(&self.key),
            client_certificates: self.client_certificates.map(|it| folder.join(it)),
        }
    }
}

/// Parses an address with a port: `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, or only the port, which means the
/// loopback address.
pub fn address(text: &str) -> Option<SocketAddr> {
    if let Ok(port) = text.parse() {
        return Some(SocketAddr::new(DEFAULT_LISTEN.ip(), port));
    }
    match text.strip_prefix("localhost:") {
        Some(port) => Some(SocketAddr::new(DEFAULT_LISTEN.ip(), port.parse().ok()?)),
        None => text.parse().ok(),
    }
}

/// Resolves the table, for messages of at most this many bytes.
pub(crate) fn resolve(table: HttpTable, max_message: usize) -> Result<HttpPlan, ConfigProblem> {
    let legacy = match &table.legacy_sse {
        None => Some(DEFAULT_LEGACY_SSE.to_owned()),
        Some(value) if value.value.is_empty() => None,
        Some(value) => Some(path("legacy_sse", value)?),
    };
    let main =
        table.path.as_ref().map_or(Ok(DEFAULT_PATH.to_owned()), |value| path("path", value))?;
    if let Some(value) = table.legacy_sse.as_ref().filter(|_| legacy.as_ref() == Some(&main)) {
        let message = format!("`legacy_sse` and `path` are both `{main}`");
        return Err(ConfigProblem::new(message)
            .help("choose different paths")
            .at(value.span.clone()));
    }
    Ok(HttpPlan {
        listen: table.listen.as_ref().map_or(Ok(DEFAULT_LISTEN), listen)?,
        legacy_sse: legacy.filter(|legacy| *legacy != main),
        path: main,
        public_url: table.public_url.as_ref().map(public_url::resolve).transpose()?,
        guard: guard(&table)?,
        proxies: proxies(&table)?,
        tls: table.tls.as_ref().map(tls).transpose()?,
        limits: limits(&table.limits.unwrap_or_default(), max_message),
    })
}

fn listen(value: &Spanned<String>) -> Result<SocketAddr, ConfigProblem> {
    address(&value.value).ok_or_else(|| {
        ConfigProblem::new(format!("invalid listen address `{}`", value.value))
            .help("write a local address and a port, such as `127.0.0.1:8080`")
            .at(value.span.clone())
    })
}

/// A path in its only possible spelling, so that paths can be compared byte by byte.
pub(crate) fn path(key: &str, value: &Spanned<String>) -> Result<String, ConfigProblem> {
    let path = &value.value;
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    let part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let plain = path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part));
    let problem = if RESERVED_PATHS.contains(&path.as_str()) {
        format!("`{key}` is `{path}`, which is reserved for health checks")
    } else if path.starts_with(WELL_KNOWN) {
        format!("`{key}` is `{path}`, but `{WELL_KNOWN}` is reserved for metadata")
    } else if path.len() > MAX_PATH {
        format!("`{key}` is longer than {MAX_PATH} characters")
    } else if !plain || !path.bytes().all(is_allowed) {
        format!("invalid path `{path}` in `{key}`")
    } else {
        return Ok(path.clone());
    };
    let help = "write a `/` followed by letters, digits, `-`, `.`, `_` or `~`, such as `/mcp`";
    Err(ConfigProblem::new(problem).help(help).at(value.span.clone()))
}

fn guard(table: &HttpTable) -> Result<OriginGuard, ConfigProblem> {
    let mut guard = OriginGuard::loopback();
    if let Some(value) = &table.public_url {
        let authority = public_url::authority(&value.value);
        guard.allow_host(authority).map_err(|_| public_url::problem(value))?;
    }
    allow_hosts(&mut guard, table.hosts.iter().flatten())?;
    for Spanned { value, span } in table.origins.iter().flatten() {
        guard.allow_origin(value).map_err(|_| {
            ConfigProblem::new(format!("invalid origin `{value}`"))
                .help("write a scheme and a host in lower case, such as `https://app.example.com`")
                .at(span.clone())
        })?;
    }
    Ok(guard)
}

/// Adds configured hosts to a guard.
pub(crate) fn allow_hosts<'a>(
    guard: &mut OriginGuard,
    hosts: impl Iterator<Item = &'a Spanned<String>>,
) -> Result<(), ConfigProblem> {
    for Spanned { value, span } in hosts {
        guard.allow_host(value).map_err(|_| {
            ConfigProblem::new(format!("invalid host `{value}`"))
                .help(
                    "write a host name or an IP address with an optional port, such as \
                    `mcp.example.com`",
                )
                .at(span.clone())
        })?;
    }
    Ok(())
}

fn proxies(table: &HttpTable) -> Result<TrustedProxies, ConfigProblem> {
    let networks = table.trusted_proxies.iter().flatten().map(|Spanned { value, span }| {
        value.parse::<Network>().map_err(|_| {
            ConfigProblem::new(format!("`{value}` is neither an IP address nor a network"))
                .help("write an address such as `192.0.2.7`, or a network such as `10.0.0.0/8`")
                .at(span.clone())
        })
    });
    networks.collect()
}

/// Resolves the table of a certificate.
pub(crate) fn tls(table: &TlsTable) -> Result<TlsPlan, ConfigProblem> {
    let file = |key: &str, value: &Spanned<String>| {
        if value.value.is_empty() {
            let message = format!("`{key}` is empty");
            return Err(ConfigProblem::new(message)
                .help("write a file name")
                .at(value.span.clone()));
        }
        Ok(PathBuf::from(&value.value))
    };
    let certificate = file("certificate", &table.certificate)?;
    let clients = table.client_certificates.as_ref();
    Ok(TlsPlan {
        certificate,
        key: file("key", &table.key)?,
        client_certificates: clients.map(|it| file("client_certificates", it)).transpose()?,
    })
}

fn limits(table: &HttpLimitsTable, max_message: usize) -> HttpLimitsPlan {
    let connections = table
        .max_connections
        .map_or_else(creole::internal::budget::max_connections, |max| count(max.get()));
    HttpLimitsPlan {
        max_body: table.max_body.map_or(max_message, |bytes| count(bytes.get())),
        max_buffered: table.max_buffered.map(|bytes| count(bytes.get())),
        max_connections: connections,
        max_connections_per_address: table
            .max_connections_per_address
            .map_or(connections.div_ceil(2), |max| count(max.get())),
        max_sessions: table.max_sessions.map_or(10_000, |max| count(max.get())),
        session_timeout: duration_or(table.session_timeout_seconds, 1800),
        header_timeout: duration_or(table.header_timeout_seconds, 10),
        body_timeout: duration_or(table.body_timeout_seconds, 30),
        idle_timeout: duration_or(table.idle_timeout_seconds, 60),
        write_timeout: duration_or(table.write_timeout_seconds, 30),
        drain_delay: seconds(table.drain_delay_seconds.map_or(0, Ranged::get)),
        drain_timeout: duration_or(table.drain_timeout_seconds, 30),
    }
}

fn duration_or<const MOST: i64>(written: Option<Ranged<1, MOST>>, default_value: i64) -> Duration {
    seconds(written.map_or(default_value, Ranged::get))
}
