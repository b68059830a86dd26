//! Hosts the reloads of a plan.

use std::path::Path;
use std::sync::Arc;

use creole::auth::Authenticator;
use creole::internal::telemetry::Telemetry;
use creole_config::plan::ClientScope;
use creole_config::{
    ConfigSource, LoadFailure, Plan, ReloadHost, Reloader, ServerInstance, TelemetryExport,
};

use super::{load_plan, log_plan};
use crate::args::ServeArgs;
use crate::failure::Failure;
use crate::instance::instance_options;
use crate::{log, output};

/// Starts the export of a process. Must be called within a tokio runtime.
pub(super) fn start_export(plan: &Plan) -> TelemetryExport {
    let export = TelemetryExport::new(&Telemetry::default(), log::set_export);
    export.apply(&plan.telemetry);
    export
}

/// The reloader of a plan whose servers are running.
///
/// # Errors
/// When an argument is invalid.
pub(super) fn reloader(
    plan: &Plan,
    args: &ServeArgs,
    export: &TelemetryExport,
    instances: Vec<ServerInstance>,
    callers: Option<Authenticator>,
    scope: ClientScope,
) -> Result<Arc<Reloader>, Failure> {
    let host = Arc::new(ServeHost(args.clone()));
    Ok(Reloader::new(plan, host, instance_options(args, export)?, instances, callers, scope))
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

    fn load_plan(&self) -> Result<Plan, LoadFailure> {
        load_plan(&self.0).map_err(|failure| match failure {
            Failure::Config(error) => error.into(),
            other => LoadFailure { message: other.to_string(), error: None },
        })
    }

    fn set_log_level(&self, plan: &Plan) {
        log::set_level(log_plan(plan, &self.0).level);
    }

    fn write_message(&self, message: &str) {
        output::write_message(message);
    }
}
