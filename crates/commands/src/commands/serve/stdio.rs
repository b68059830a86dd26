//! Serves on stdin and stdout.

use std::io;
use std::io::IsTerminal;
use std::time::Duration;

use creole::EndReason;
use creole_config::plan::ClientScope;
use creole_config::{AdminProcess, Plan};
use creole_gateway::upstream::Affinity;
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::admin;
use super::host::{reloader, start_export};
use super::prerequisites::Prerequisites;
use super::signals;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::instance::{runtime, start_instance};
use crate::output;

/// Serves until the client disconnects.
pub(super) fn run(plan: &Plan, args: &ServeArgs) -> Result<(), Failure> {
    let servers = plan.split();
    let [only] = servers.as_slice() else {
        let several = "stdio serves one server, but the configuration has several; choose one \
            with --server NAME, or serve all with --http ADDRESS";
        return Err(Failure::Refused(several.to_owned()));
    };
    Prerequisites::of(plan, None, true)?;
    if io::stdin().is_terminal() {
        output::write_message(&terminal_hint(plan));
    }
    // One thread: a stdio server has one client, and starting a pool costs more than it gains.
    let runtime = runtime(&mut Builder::new_current_thread())?;
    runtime.block_on(async {
        let export = start_export(plan);
        let admin = admin::bind(plan, args.insecure_admin, export.telemetry()).await?;
        let served = start_instance(only, args, &export, Affinity::Single).await?;
        let service = served.service.clone();
        let renewal = reloader(plan, args, &export, vec![served], None, ClientScope::Single)?;
        renewal.watch();
        let mut reloads = Vec::new();
        if let Some(admin) = admin {
            (reloads, _) = admin::start(admin, AdminProcess::new(&renewal), export.telemetry());
        }
        if renewal.has_file() {
            let result = signals::listen_for_reloads(&renewal, reloads);
            result.map_err(|error| Failure::Serve(format!("cannot receive signals: {error}")))?;
        }
        let served = service.serve_stdio();
        let ended = match plan.telemetry.exports() {
            // What waits for its export is sent before the process ends.
            true => signals::until_terminated(served).await,
            false => served.await,
        };
        drop(service);
        let ended = close_upstreams(ended, renewal.close()).await;
        export.shut_down().await;
        ended
    })
}

/// How long upstreams may take to close after the client has disconnected.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Closes the upstreams. If the client is gone, they have `CLOSE_TIMEOUT` for it, and the rest is killed when the
/// runtime ends.
pub(crate) async fn close_upstreams(
    ended: io::Result<EndReason>,
    closing: impl Future<Output = ()>,
) -> Result<(), Failure> {
    match ended {
        Ok(EndReason::InputClosed) => closing.await,
        // Upstreams that have not closed by then are abandoned.
        _ => _ = timeout(CLOSE_TIMEOUT, closing).await,
    }
    ended.map(drop).map_err(|error| Failure::Serve(format!("cannot use stdin or stdout: {error}")))
}

/// The message for a user at a terminal. Without it, the terminal shows no output.
fn terminal_hint(plan: &Plan) -> String {
    format!(
        "creole: `{}` serves MCP on stdin and stdout; an MCP client usually starts this command. \
            To try it: echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}' | creole serve",
        plan.server.name
    )
}
