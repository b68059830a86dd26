//! Serves over HTTP.

use std::io;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::sync::Arc;
use std::time::Duration;

use creole::auth::Authenticator;
use creole::internal::budget::Budget;
use creole::internal::http::ListenerMetrics;
use creole::serve::http::{
    Drain, DrainStage, EndpointSettings, HttpLimits, Listener, McpEndpoint, Method, ResourceGate,
    Route, Router,
};
use creole::state::State;
use creole_config::plan::{ClientScope, HttpPlan};
use creole_config::{AdminProcess, Plan, ServerInstance, TelemetryExport};
use creole_gateway::upstream::Affinity;
use tokio::runtime::Builder;
use tokio::time::{Instant, timeout, timeout_at};

use super::admin;
use super::host::{reloader, start_export};
use super::prerequisites::{Prerequisites, reload_certificates};
use super::signals;
use super::signals::{Reload, SignalTargets};
use super::systemd::ServiceNotifier;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::instance::{runtime, start_instance};
use crate::output;

/// How long upstreams may take to close after the second signal to end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Listens until the shutdown, on this socket or on the configured address.
pub(super) fn run(
    plan: &Plan,
    http: &HttpPlan,
    args: &ServeArgs,
    socket: Option<TcpListener>,
) -> Result<(), Failure> {
    let mut http = http.clone();
    if let Some(socket) = &socket {
        // The checks of the address are about the one that clients reach.
        http.listen = socket.local_addr().map_err(|error| listen_failure(http.listen, &error))?;
    }
    let http = &http;
    let prerequisites = Prerequisites::of(plan, Some(http), args.dangerously_without_auth)?;
    allow_many_files();
    let runtime = runtime(&mut runtime_builder())?;
    let ended = runtime.block_on(listen(plan, http, args, prerequisites, socket));
    // Calls that still compute have been abandoned by now.
    runtime.shutdown_background();
    ended
}

/// A thread pool, unless there is one core, on which a pool only adds overhead.
fn runtime_builder() -> Builder {
    match std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    }
}

async fn listen(
    plan: &Plan,
    http: &HttpPlan,
    args: &ServeArgs,
    prerequisites: Prerequisites,
    socket: Option<TcpListener>,
) -> Result<(), Failure> {
    if let Some(bytes) = http.limits.max_buffered {
        Budget::of_process().set_max_bytes(bytes);
    }
    let (drain, export) = (Drain::new(), start_export(plan));
    let Prerequisites { certificates, authenticator: callers } = prerequisites;
    let admin = admin::bind(plan, args.insecure_admin, export.telemetry()).await?;
    let (router, served, endpoints) =
        router(plan, http, args, &export, &drain, callers.as_ref()).await?;
    let cannot = |error| listen_failure(http.listen, &error);
    let listener = match socket {
        Some(socket) => Listener::from_socket(socket, limits(http)),
        None => Listener::bind(http.listen, limits(http)).await,
    };
    let mut listener = listener.map_err(cannot)?;
    let address = listener.address().map_err(cannot)?;
    let mut reloads: Vec<Reload> = Vec::new();
    if let Some(certificates) = certificates {
        listener = listener.tls(Arc::clone(&certificates));
        reloads.push(Box::new(move || reload_certificates(&certificates)));
    }
    let renewal = reloader(plan, args, &export, served, callers, ClientScope::Many)?;
    renewal.watch();
    let admin = admin.map(|admin| {
        let process = AdminProcess::with_http(&renewal, http, endpoints, &drain);
        let (reload, task) = admin::start(admin, process, export.telemetry());
        reloads.extend(reload);
        task
    });
    let notifier = ServiceNotifier::default();
    let drain_delay = http.limits.drain_delay;
    let (reloader, notifier_of_signals) = (Arc::clone(&renewal), notifier.clone());
    let draining = drain.clone();
    let targets =
        SignalTargets { drain, drain_delay, reloader, reloads, notifier: notifier_of_signals };
    let end_now = signals::listen(targets)
        .map_err(|error| Failure::Serve(format!("cannot receive signals: {error}")))?;
    let hint = connection_hint(plan, http, address);
    output::write_message(&hint);
    notifier.notify_ready(&hint);
    if args.http.is_none() && stdin_is_a_pipe() {
        // A client may have started this process for stdio, and would wait forever.
        output::write_message(
            "creole: serving HTTP because of `[http]`; use --stdio to serve stdin and stdout",
        );
    }
    let drain_timeout = http.limits.drain_timeout;
    let served = async {
        let deadline = drain_deadline(&draining, drain_timeout);
        let ((), deadline) = tokio::join!(McpEndpoint::serve(listener, router), deadline);
        // Calls whose clients wait at other replicas have the same time as those whose clients are connected here.
        _ = timeout_at(deadline, renewal.finish_replica_requests()).await;
        renewal.close().await;
        export.shut_down().await;
    };
    let ended = tokio::select! {
        () = served => Ok(()),
        () = end_now.notified() => {
            // Children that have not ended by then are killed.
            _ = timeout(CLOSE_TIMEOUT, renewal.close()).await;
            Err(Failure::Serve("a second signal ended the server before its calls".to_owned()))
        }
    };
    if let Some(admin) = admin {
        // The end of the task removes the socket and the file of the link.
        admin.abort();
        _ = admin.await;
    }
    ended
}

/// Waits until the server drains. Returns when it must have ended.
async fn drain_deadline(drain: &Drain, timeout: Duration) -> Instant {
    drain.wait_for(DrainStage::Draining).await;
    Instant::now() + timeout
}

fn limits(http: &HttpPlan) -> HttpLimits {
    let limits = &http.limits;
    let mut of_listener = HttpLimits::default();
    of_listener.connections = limits.max_connections;
    of_listener.connections_per_address = limits.max_connections_per_address;
    of_listener.header_timeout = limits.header_timeout;
    of_listener.idle_timeout = limits.idle_timeout;
    of_listener.write_timeout = limits.write_timeout;
    of_listener.drain_timeout = limits.drain_timeout;
    of_listener
}

/// The reason why an address cannot be listened on, with a suggestion.
fn listen_failure(listen: SocketAddr, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        ErrorKind::AddrInUse => {
            "the address is in use by another program; stop it, or choose another port with \
                --http or `listen`"
                .to_owned()
        }
        ErrorKind::AddrNotAvailable => {
            "it is not an address of this machine; use 127.0.0.1 for local clients".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("the port needs a privilege ({error}); choose 1024 or higher")
        }
        _ => error.to_string(),
    };
    Failure::Serve(format!("cannot listen on {listen}: {reason}"))
}

/// Whether stdin is a pipe, as it is when a client starts a server.
fn stdin_is_a_pipe() -> bool {
    let stdin = std::fs::metadata("/dev/stdin").map(|it| it.file_type());
    stdin.is_ok_and(|file_type| file_type.is_fifo() || file_type.is_socket())
}

/// The message that tells the user where to connect.
fn connection_hint(plan: &Plan, http: &HttpPlan, address: SocketAddr) -> String {
    let scheme = if http.tls.is_some() { "https" } else { "http" };
    let line = |plan: &Plan| {
        let (name, path) = (&plan.server.name, path(plan, http));
        format!("creole: `{name}` listens on {scheme}://{address}{path}")
    };
    plan.split().iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The router over the servers' paths, and the instances and endpoints behind it.
async fn router(
    plan: &Plan,
    http: &HttpPlan,
    args: &ServeArgs,
    export: &TelemetryExport,
    drain: &Drain,
    callers: Option<&Authenticator>,
) -> Result<(Router<McpEndpoint>, Vec<ServerInstance>, Vec<McpEndpoint>), Failure> {
    let metrics = export.telemetry().metrics();
    let measured = metrics.is_enabled().then(|| ListenerMetrics::new(export.telemetry(), "mcp"));
    let mut router =
        Router::new(http.guard(), drain.clone()).proxies(http.proxies.clone()).measured(measured);
    let (mut all, mut endpoints) = (Vec::new(), Vec::new());
    if let Some(callers) = callers {
        router = router.documents(Arc::new(callers.clone()));
        callers.set_metrics(metrics);
    }
    let plans = plan.split();
    let server_count = plans.len();
    for (index, plan) in plans.iter().enumerate() {
        // HTTP+SSE, the oldest transport, has one path, which leads to the first server.
        let old_sse = http.legacy_sse.clone().filter(|_| index == 0);
        let path = path(plan, http);
        let served = start_instance(plan, args, export, Affinity::Principal).await?;
        if let Some(callers) = callers {
            callers.set_state(&served.state);
        }
        let endpoint = endpoint(&served, http, drain, old_sse.clone());
        let gate = served.site_gate.clone();
        all.push(served);
        endpoints.push(endpoint.clone());
        let route = |path: &str, methods: &[Method], resource: usize| {
            let route = Route::new(path, methods, endpoint.clone());
            match (&gate, callers) {
                (Some(gate), _) => route.authenticate(Arc::new(gate.clone())),
                (None, Some(callers)) => {
                    route.authenticate(Arc::new(ResourceGate::new(callers.clone(), resource)))
                }
                (None, None) => route,
            }
        };
        let methods = [Method::POST, Method::GET, Method::DELETE];
        // Without sessions there is no stream to GET and no session to DELETE.
        let taken = if plan.server.dialect.is_sessionless() { 1 } else { methods.len() };
        router = router.route(route(path, &methods[..taken], index));
        if let Some(path) = old_sse {
            // Its resource follows those of the servers.
            router = router.route(route(&path, &methods[..2], server_count));
        }
    }
    Ok((router, all, endpoints))
}

/// The path of a server.
fn path<'a>(plan: &'a Plan, http: &'a HttpPlan) -> &'a str {
    plan.server.path.as_ref().unwrap_or(&http.path)
}

/// The endpoint of one server, which drains at the shutdown.
fn endpoint(
    served: &ServerInstance,
    http: &HttpPlan,
    drain: &Drain,
    old_sse: Option<String>,
) -> McpEndpoint {
    let (service, state) = (served.service.clone(), served.state.clone());
    let peers = served.replicas.clone();
    let mut settings = settings(http, state, drain);
    settings.legacy_sse_path = old_sse;
    settings.replicas = peers;
    let endpoint = McpEndpoint::new(service, settings);
    let (drained, drain) = (endpoint.clone(), drain.clone());
    tokio::spawn(async move {
        drain.wait_for(DrainStage::Draining).await;
        drained.drain();
    });
    endpoint
}

fn settings(http: &HttpPlan, state: State, drain: &Drain) -> EndpointSettings {
    let limits = &http.limits;
    let mut settings = EndpointSettings::default();
    settings.legacy_sse_path = http.legacy_sse.clone();
    settings.body.size = limits.max_body;
    settings.body.total = limits.body_timeout;
    settings.max_sessions = limits.max_sessions;
    settings.session_idle = limits.session_timeout;
    settings.drain = drain.clone();
    settings.state = state;
    settings
}

/// Raises the limit of open files to the maximum that the system allows. The default limits are for interactive use.
#[cfg(unix)]
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, connections wait for a free slot earlier.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(not(unix))]
fn allow_many_files() {}
