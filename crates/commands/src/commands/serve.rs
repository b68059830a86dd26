//! `creole serve`: serves a configuration on stdin and stdout or over HTTP.

pub(crate) mod admin;
mod host;
mod http;
mod prerequisites;
mod signals;
mod stdio;
mod systemd;

pub(crate) use prerequisites::Prerequisites;
pub(crate) use stdio::close_upstreams;

use creole_config::Plan;
use creole_config::plan::{HttpPlan, LogPlan};
use creole_config::tables::enums::{LogFormat, LogLevel};

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::instance::only_server;
use crate::{log, output};

/// Runs the verb.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    // Before anything starts a thread.
    let socket = systemd::take_socket()?;
    // Errors of the configuration are written in the log format that it sets, as far as that can be read.
    let format = args.log.map(LogFormat::from).or_else(|| args.chosen.source().log_format());
    if format == Some(LogFormat::Json) {
        output::use_json_messages();
    }
    let plan = load_plan(args)?;
    log::start(log_plan(&plan, args));
    match http_plan(&plan, args) {
        Some(reached) => http::run(&plan, &reached, args, socket),
        None if socket.is_some() => Err(Failure::Refused(
            "systemd passes a socket, but the server uses stdin and stdout; add the table `[http]` to \
                the configuration, or disable the socket unit"
                .to_owned(),
        )),
        None => stdio::run(&plan, args),
    }
}

/// The plan of the configuration and the command line.
fn load_plan(args: &ServeArgs) -> Result<Plan, Failure> {
    let mut plan = Plan::load(args.chosen.source(), &creole_config::packs())?;
    if !args.command.is_empty() && args.chosen.is_default() {
        // With only a program on the command line, that program alone is served.
        plan.server.packs.clear();
        plan.server.instructions = None;
    }
    match &args.server {
        Some(name) => only_server(&plan, name),
        None => Ok(plan),
    }
}

/// The plan of one of several servers.
/// The HTTP listener, if there is one. The command line overrides the configuration.
fn http_plan(plan: &Plan, args: &ServeArgs) -> Option<HttpPlan> {
    if args.stdio {
        return None;
    }
    let Some(listen) = args.http else { return plan.http.clone() };
    let usual = || HttpPlan::with_defaults(plan.server.dialect.max_message);
    let mut http = plan.http.clone().unwrap_or_else(usual);
    http.listen = listen;
    Some(http)
}

/// The plan of the log. The command line overrides the configuration.
fn log_plan(plan: &Plan, args: &ServeArgs) -> LogPlan {
    let format = args.log.map_or(plan.log.format, Into::into);
    let level = match plan.log.level {
        LogLevel::Trace => LogLevel::Trace,
        _ if args.debug => LogLevel::Debug,
        level => level,
    };
    LogPlan { format, level, ..plan.log }
}
