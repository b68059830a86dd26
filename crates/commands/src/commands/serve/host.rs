//! Connects the command line to a plan: starts the servers and hosts their reloads.

use std::path::Path;
use std::sync::Arc;

use creole::auth::Authenticator;
use creole_config::plan::ClientScope;
use creole_config::{ConfigSource, InstanceOptions, Plan, ReloadHost, Reloader, ServerInstance};
use creole_gateway::upstream::Affinity;

use super::{load_plan, log_plan};
use crate::args::ServeArgs;
use crate::commands::reap;
use crate::failure::Failure;
use crate::{log, output, target};

/// Starts the server of a plan.
///
/// # Errors
/// When a part of the plan cannot be built, or an argument is invalid.
pub(crate) async fn start_instance(
    plan: &Plan,
    args: &ServeArgs,
    affinity: Affinity,
) -> Result<ServerInstance, Failure> {
    Ok(ServerInstance::new(plan, &instance_options(args)?, affinity).await?)
}

/// The options of the command line for the servers of a plan.
fn instance_options(args: &ServeArgs) -> Result<InstanceOptions, Failure> {
    let program = match args.command.is_empty() {
        true => None,
        false => Some(target::program_address(&args.command, &args.environment)?),
    };
    Ok(InstanceOptions {
        debug: args.debug,
        program,
        transparent: args.chosen.is_default(),
        start_reaper: reap::start,
    })
}

/// The reloader of a plan whose servers are running.
///
/// # Errors
/// When an argument is invalid.
pub(super) fn reloader(
    plan: &Plan,
    args: &ServeArgs,
    instances: Vec<ServerInstance>,
    callers: Option<Authenticator>,
    scope: ClientScope,
) -> Result<Arc<Reloader>, Failure> {
    let host = Arc::new(ServeHost(args.clone()));
    Ok(Reloader::new(plan, host, instance_options(args)?, instances, callers, scope))
}

/// The process that `creole serve` runs in.
struct ServeHost(ServeArgs);

impl ReloadHost for ServeHost {
    fn file(&self) -> Option<&Path> {
        match self.0.chosen.source() {
            ConfigSource::File(file) => Some(file),
            _ => None,
        }
    }

    fn load_plan(&self) -> Result<Plan, String> {
        load_plan(&self.0).map_err(|failure| failure.to_string())
    }

    fn set_log_level(&self, plan: &Plan) {
        log::set_level(log_plan(plan, &self.0).level);
    }

    fn write_message(&self, message: &str) {
        output::write_message(message);
    }
}
