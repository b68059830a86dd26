//! `creole serve`: a configuration, spoken on stdin and stdout or over HTTP.

mod http;
mod signals;
mod stdio;

use creole::state::{Limits, State};
use creole::{Service, guard};
use creole_gateway::Plan;
use creole_gateway::config::words::LogLevel;
use creole_gateway::federation::Federation;
use creole_gateway::plan::upstream::Reached;
use creole_gateway::plan::{HttpPlan, LogPlan};
use creole_gateway::upstream::{Affinity, Settings};
use creole_tools::Options;
use tokio::runtime::{Builder, Runtime};

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::{guardian, log, target};

/// Runs the verb.
pub(crate) fn run(args: &ServeArgs) -> Result<(), Failure> {
    let mut plan = Plan::load(args.chosen.source(), &creole_cli::packs())?;
    if !args.command.is_empty() && args.chosen.is_default() {
        // Whoever only names a program wants that program and nothing else.
        plan.server.packs.clear();
        plan.server.instructions = None;
    }
    if let Some(name) = &args.server {
        plan = chosen(&plan, name)?;
    }
    log::start(log_of(&plan, args));
    match http_of(&plan, args) {
        Some(reached) => http::run(&plan, &reached, args),
        None => stdio::run(&plan, args),
    }
}

/// The plan of one of several servers.
fn chosen(plan: &Plan, name: &str) -> Result<Plan, Failure> {
    plan.named(name).ok_or_else(|| {
        let names: Vec<String> = plan.each().into_iter().map(|plan| plan.server.name).collect();
        let names = names.join("`, `");
        Failure::Usage(format!("there is no server `{name}`; those that there are: `{names}`"))
    })
}

/// How the server is reached over HTTP, if it is: the command line has the last word.
fn http_of(plan: &Plan, args: &ServeArgs) -> Option<HttpPlan> {
    if args.stdio {
        return None;
    }
    let Some(listen) = args.http else { return plan.http.clone() };
    let usual = || HttpPlan::usual(plan.server.dialect.max_message);
    let mut reached = plan.http.clone().unwrap_or_else(usual);
    reached.listen = listen;
    Some(reached)
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

/// What is served.
struct Served {
    service: Service,
    /// Where it keeps what outlives a request.
    state: State,
    /// The servers behind it.
    federation: Federation,
}

/// The server that is planned. A server behind it has the one caller of stdio to itself.
async fn assemble(plan: &Plan, args: &ServeArgs, affinity: Affinity) -> Result<Served, Failure> {
    guard::install_hook(args.debug);
    let state = match &plan.state {
        None => State::default(),
        Some(file) => State::sqlite(file, Limits::default()).await.map_err(|error| {
            Failure::Refused(format!("`{}` cannot keep the state: {error}", file.display()))
        })?,
    };
    let federation = Federation::default();
    let server = creole_cli::assemble(plan, &Options::default(), &federation)
        .map_err(|refusal| Failure::Serve(refusal.to_string()))?;
    let service = server.debug(args.debug).state(state.clone()).start();
    let mut servers = behind(plan, args, affinity)?;
    guardian::watch(servers.iter_mut().map(|server| &mut server.way));
    federation.begin(servers, service.registry(), !plan.server.packs.is_empty());
    Ok(Served { service, state, federation })
}

/// The servers behind: those that are planned, and the program that the command line names.
fn behind(plan: &Plan, args: &ServeArgs, affinity: Affinity) -> Result<Vec<Settings>, Failure> {
    let mut program = match args.command.is_empty() {
        true => None,
        false => Some(target::program(&args.command)?),
    };
    let mut servers = Vec::new();
    for upstream in &plan.upstreams {
        let mut planned = Settings::planned(upstream)
            .map_err(|refusal| Failure::Refused(format!("`{}`: {refusal}", upstream.name)))?;
        if planned.affinity != Affinity::Shared {
            planned.affinity = affinity;
        }
        // A preset only stands in for what the command line may name.
        if matches!(upstream.reached, Reached::Preset(_))
            && let Some(way) = program.take()
        {
            planned.way = way;
        }
        planned.patience = plan.server.limits.question_timeout;
        servers.push(planned);
    }
    if let Some(way) = program {
        let transparent = args.chosen.is_default();
        let patience = plan.server.limits.question_timeout;
        servers.push(Settings { affinity, transparent, patience, ..Settings::new(way) });
    }
    Ok(servers)
}

pub(crate) fn runtime(builder: &mut Builder) -> Result<Runtime, Failure> {
    let built = builder.enable_all().build();
    built.map_err(|error| Failure::Serve(format!("the runtime cannot start: {error}")))
}
