//! `creole serve`: a configuration, spoken on stdin and stdout.

use std::io::{self, IsTerminal};

use creole::guard;
use creole_gateway::Plan;
use creole_gateway::config::words::LogLevel;
use creole_gateway::plan::LogPlan;
use creole_tools::Options;
use tokio::runtime::{Builder, Runtime};

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::{log, output};

/// Runs the verb.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let plan = Plan::load(args.chosen.source(), &creole_cli::packs())?;
    log::start(log_of(&plan, args));
    if io::stdin().is_terminal() {
        output::talk(&invitation(&plan));
    }
    runtime()?.block_on(speak(plan, args.debug))
}

/// One thread: a stdio server has one peer, and a pool would cost more at start than it brings.
fn runtime() -> Result<Runtime, Failure> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|error| Failure::Serve(format!("the runtime cannot start: {error}")))
}

/// The log that was configured, as the command line changes it.
fn log_of(plan: &Plan, args: &ServeArgs) -> LogPlan {
    let format = args.log.map_or(plan.log.format, Into::into);
    let level = match plan.log.level {
        LogLevel::Trace => LogLevel::Trace,
        _ if args.debug => LogLevel::Debug,
        level => level,
    };
    LogPlan { format, level, ..plan.log }
}

/// What a person at a terminal is told, who would otherwise see nothing happen.
fn invitation(plan: &Plan) -> String {
    format!(
        "creole: `{}` speaks MCP on stdin and stdout and waits for a client to start it; to try it by \
         hand: echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}' | creole serve",
        plan.server.name
    )
}

/// Speaks until the client is gone.
async fn speak(plan: Plan, debug: bool) -> Result<(), Failure> {
    guard::install_hook(debug);
    let server = creole_cli::assemble(&plan, &Options::default())
        .map_err(|unknown| Failure::Serve(unknown.to_string()))?;
    let ended = server.debug(debug).serve_stdio().await;
    ended.map_err(|error| Failure::Serve(format!("stdin or stdout cannot be used: {error}")))
}
