//! The plan of the admin listener: the resolved table `[admin]`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use creole_admin::{AdminAddress, CapturePolicy};
use creole_proto::http::origin_guard::OriginGuard;

use crate::plan::file;
use crate::plan::http::{TlsPlan, address, allow_hosts, tls};
use crate::syntax::error::{ConfigError, ConfigProblem};
use crate::syntax::value::Spanned;
use crate::tables::admin::{AdminTable, CaptureMode};

/// The default address. OpenTelemetry gives this port to exporters of Prometheus.
const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);
/// What the path of a socket begins with.
const UNIX_PREFIX: &str = "unix:";
/// What stands for the id of a trace.
const TRACE_PLACE: &str = "{trace}";

/// The admin listener.
#[derive(Clone, Debug, PartialEq)]
pub struct AdminPlan {
    /// Where it listens.
    pub listen: AdminAddress,
    /// The file of users.
    pub users: Option<PathBuf>,
    /// The file of keys.
    pub keys_file: Option<PathBuf>,
    /// Whether the console is served.
    pub console: bool,
    /// Whether payloads may be looked at.
    pub capture: CapturePolicy,
    /// Whether metrics need no credential.
    pub metrics_open: bool,
    /// The page of a trace.
    pub trace_url: Option<String>,
    /// The certificate.
    pub tls: Option<TlsPlan>,
    /// Why other machines must not be able to reach it, if they can.
    pub exposure: Option<ConfigError>,
    guard: OriginGuard,
    problem: Option<ConfigProblem>,
}

impl AdminPlan {
    /// The accepted hosts: this machine, the address that is listened on, and the configured ones.
    pub fn guard(&self) -> OriginGuard {
        let mut guard = self.guard.clone();
        if let AdminAddress::Tcp(address) = &self.listen
            && !address.ip().is_unspecified()
        {
            guard.allow_address(address.ip());
        }
        guard
    }

    /// Whether callers have credentials of their own.
    pub fn has_users(&self) -> bool {
        self.users.is_some() || self.keys_file.is_some()
    }

    /// Resolves relative paths against this folder.
    pub(crate) fn resolve_paths(mut self, folder: &Path) -> Self {
        for path in [&mut self.users, &mut self.keys_file].into_iter().flatten() {
            *path = folder.join(&*path);
        }
        if let AdminAddress::Unix(path) = &mut self.listen {
            *path = folder.join(&*path);
        }
        self.tls = self.tls.map(|tls| tls.resolve_paths(folder));
        self
    }

    /// Shows the problem of its address in the file of this name and text.
    pub(crate) fn locate_problem(mut self, name: &str, text: &str) -> Self {
        self.exposure = self.problem.take().map(|problem| problem.into_error(name, text));
        self
    }
}

/// Resolves the table.
pub(crate) fn resolve(table: AdminTable) -> Result<AdminPlan, ConfigProblem> {
    let span = table.listen.as_ref().map(|listen| listen.span.clone());
    let listen =
        table.listen.as_ref().map_or(Ok(AdminAddress::Tcp(DEFAULT_LISTEN)), admin_address)?;
    let mut guard = OriginGuard::loopback();
    allow_hosts(&mut guard, table.hosts.iter().flatten())?;
    let mut plan = AdminPlan {
        listen,
        users: table.users.map(|path| file("users", path)).transpose()?,
        keys_file: table.keys_file.map(|path| file("keys_file", path)).transpose()?,
        console: table.console.unwrap_or(true),
        capture: match table.capture.unwrap_or(CaptureMode::Ask) {
            CaptureMode::Never => CapturePolicy::Never,
            CaptureMode::Ask => CapturePolicy::Ask,
            CaptureMode::Always => CapturePolicy::Always,
        },
        metrics_open: table.metrics_open.unwrap_or(false),
        trace_url: table.trace_url.map(trace_url).transpose()?,
        tls: table.tls.as_ref().map(tls).transpose()?,
        exposure: None,
        guard,
        problem: None,
    };
    plan.problem = exposure(&plan).map(|problem| match span {
        Some(span) => problem.at(span),
        None => problem,
    });
    Ok(plan)
}

/// The problem of an address that other machines can reach without a credential or without TLS.
fn exposure(plan: &AdminPlan) -> Option<ConfigProblem> {
    if plan.listen.is_local() || (plan.has_users() && plan.tls.is_some()) {
        return None;
    }
    let missing = match (plan.has_users(), plan.tls.is_some()) {
        (false, false) => "neither users nor TLS",
        (false, true) => "no users",
        (true, _) => "no TLS",
    };
    let message = format!(
        "the admin listener on `{}` can be reached from other machines, and has {missing}",
        plan.listen
    );
    Some(ConfigProblem::new(message).help(
        "listen on 127.0.0.1 or on a Unix socket; or add `users` or `keys_file`, and `tls`; or \
            start with --insecure-admin if a proxy or a mesh does both",
    ))
}

fn admin_address(value: &Spanned<String>) -> Result<AdminAddress, ConfigProblem> {
    let invalid = || {
        ConfigProblem::new(format!("invalid listen address `{}`", value.value))
            .help(
                "write an address and a port, such as `127.0.0.1:9464`, or a path, such as \
                    `unix:/run/creole/admin.sock`",
            )
            .at(value.span.clone())
    };
    match value.value.strip_prefix(UNIX_PREFIX) {
        Some("") => Err(invalid()),
        Some(path) => Ok(AdminAddress::Unix(path.into())),
        None => address(&value.value).map(AdminAddress::Tcp).ok_or_else(invalid),
    }
}

fn trace_url(value: Spanned<String>) -> Result<String, ConfigProblem> {
    let is_web = ["http://", "https://"].iter().any(|scheme| value.value.starts_with(scheme));
    if is_web && value.value.contains(TRACE_PLACE) {
        return Ok(value.value);
    }
    Err(ConfigProblem::new(format!("invalid address `{}` in `trace_url`", value.value))
        .help("write `https://` and an address with `{trace}` in place of the id of a trace")
        .at(value.span))
}
