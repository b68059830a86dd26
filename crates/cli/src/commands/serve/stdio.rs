//! Serving on stdin and stdout.

use std::io::{self, IsTerminal};

use creole_gateway::Plan;
use creole_gateway::plan::Told;
use creole_gateway::upstream::Affinity;
use tokio::runtime::Builder;

use super::renewal::Renewal;
use super::served::Served;
use super::signals;
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::output;

/// Speaks until the client is gone.
pub(super) fn run(plan: &Plan, args: &ServeArgs) -> Result<(), Failure> {
    let servers = plan.each();
    let [only] = servers.as_slice() else {
        let several = "stdin and stdout serve one server, and the configuration has several; choose one \
                       with --server NAME, or serve all with --http ADDRESS";
        return Err(Failure::Refused(several.to_owned()));
    };
    if io::stdin().is_terminal() {
        output::talk(&invitation(plan));
    }
    // One thread: a stdio server has one peer, and a pool would cost more at start than it brings.
    let runtime = super::runtime(&mut Builder::new_current_thread())?;
    runtime.block_on(async {
        let served = Served::new(only, args, Affinity::Single).await?;
        let service = served.service.clone();
        let renewal = Renewal::new(plan, args, vec![served], None, Told::One);
        renewal.watch();
        if renewal.is_of_a_file() {
            let told = signals::listen_for_reloads(&renewal);
            told.map_err(|error| Failure::Serve(format!("signals cannot be received: {error}")))?;
        }
        let ended = service.serve_stdio().await;
        drop(service);
        renewal.close().await;
        ended.map_err(|error| Failure::Serve(format!("stdin or stdout cannot be used: {error}")))
    })
}

/// What a person at a terminal is told, who would otherwise see nothing happen.
fn invitation(plan: &Plan) -> String {
    format!(
        "creole: `{}` speaks MCP on stdin and stdout and waits for a client to start it; to try it by \
         hand: echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}' | creole serve",
        plan.server.name
    )
}
