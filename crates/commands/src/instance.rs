//! Starts the server of a plan in this process.

use creole::internal::process::Reaper;
use creole::internal::telemetry::Telemetry;
use creole_config::{InstanceOptions, Plan, ServerInstance, TelemetryExport};
use creole_gateway::upstream::Affinity;
use tokio::runtime::{Builder, Runtime};

use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::target;

/// The runtime of a command.
pub(crate) fn runtime(builder: &mut Builder) -> Result<Runtime, Failure> {
    let built = builder.enable_all().build();
    built.map_err(|error| Failure::Serve(format!("cannot start the runtime: {error}")))
}

/// The plan of one of the configured servers.
pub(crate) fn only_server(plan: &Plan, name: &str) -> Result<Plan, Failure> {
    plan.only_named(name).ok_or_else(|| {
        let names: Vec<String> = plan.split().into_iter().map(|plan| plan.server.name).collect();
        let names = names.join("`, `");
        Failure::Usage(format!("unknown server `{name}`; configured servers: `{names}`"))
    })
}

/// Starts the server of a plan.
///
/// # Errors
/// When a part of the plan cannot be built, or an argument is invalid.
pub(crate) async fn start_instance(
    plan: &Plan,
    args: &ServeArgs,
    export: &TelemetryExport,
    affinity: Affinity,
) -> Result<ServerInstance, Failure> {
    Ok(ServerInstance::new(plan, &instance_options(args, export)?, affinity).await?)
}

/// The export of a process whose commands export nothing.
pub(crate) fn no_export() -> TelemetryExport {
    TelemetryExport::new(&Telemetry::default(), |_| {})
}

/// The options of the command line for the servers of a plan.
pub(crate) fn instance_options(
    args: &ServeArgs,
    export: &TelemetryExport,
) -> Result<InstanceOptions, Failure> {
    let program = match args.command.is_empty() {
        true => None,
        false => Some(target::program_address(&args.command, &args.environment)?),
    };
    Ok(InstanceOptions {
        debug: args.debug,
        program,
        transparent: args.chosen.is_default(),
        telemetry: export.telemetry().clone(),
        export: export.clone(),
        audit_exporter: export.audit_exporter(),
        start_reaper,
    })
}

/// Starts a reaper, if possible.
pub(crate) fn start_reaper() -> Option<Reaper> {
    let started = std::env::current_exe().and_then(|this| Reaper::start(this, ["reap"]));
    started
        .inspect_err(|error| tracing::warn!("cannot start the reaper of child processes: {error}"))
        .ok()
}
